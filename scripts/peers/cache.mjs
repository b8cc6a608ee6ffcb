import { join } from 'node:path';
import { root } from '../run.mjs';

/** Where the peers are built: a directory for each, by its name. */
export const cache = join(root, 'node_modules/.cache/peers');
