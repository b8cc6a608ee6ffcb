import * as http from 'node:http';
import { SimulatedServer } from './server.ts';

/** Node's `http` for a simulated process: its servers listen on the network in memory. */
export const simulatedHttp = { ...http, createServer: () => new SimulatedServer() };
