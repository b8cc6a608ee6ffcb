import { lockContract } from '../../suites/lock.ts';
import { onceContract } from '../../suites/once.ts';
import { SharedMemory } from '../../suites/stores/memory-client.ts';
import { memoryStoreClient } from '../../suites/stores/memory-store-client.ts';

const memory = new SharedMemory();
const open = () => memoryStoreClient(memory);

lockContract('a third store', open);
onceContract('a third store', open);
