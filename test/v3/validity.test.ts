import { validityContract } from '../suites/validity.ts';

validityContract('v3');
