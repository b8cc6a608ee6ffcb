import { isolated } from './isolated.ts';

isolated('leader');
