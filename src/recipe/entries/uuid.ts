import { v4 } from 'uuid';

/** Returns a new random uuid in python-etcd's form: 32 hex digits without dashes. */
export const freshUuid = (): string => v4().replaceAll('-', '');
