import { isolated } from './isolated.ts';

isolated('follower');
