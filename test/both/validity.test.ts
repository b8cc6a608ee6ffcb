import { validityContract } from '../suites/validity.ts';

validityContract('both');
