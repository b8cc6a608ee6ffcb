import { workerData } from 'node:worker_threads';
import { countOnTime } from './beat.mjs';

countOnTime(workerData.counter, workerData.begun, { ref: true });
