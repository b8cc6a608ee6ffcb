import { managerContract } from '../../suites/manager.ts';
import { SharedMemory } from '../../suites/stores/memory-client.ts';
import { memoryStoreClient } from '../../suites/stores/memory-store-client.ts';

const memory = new SharedMemory();

managerContract('a third store', () => memoryStoreClient(memory), 'others');
