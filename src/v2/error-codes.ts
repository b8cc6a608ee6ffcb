/** The error numbers of etcd v2: their classes and messages. */
import {
  EtcdAlreadyExist,
  EtcdCompareFailed,
  EtcdDirNotEmpty,
  type EtcdErrorFields,
  EtcdEventIndexCleared,
  EtcdException,
  EtcdInsufficientPermissions,
  EtcdKeyNotFound,
  EtcdLeaderElectionInProgress,
  EtcdNotDir,
  EtcdNotFile,
  EtcdRootReadOnly,
  EtcdValueError,
  EtcdWatcherCleared,
} from '../errors.ts';

interface Meaning {
  readonly ErrorClass: new (message: string, fields: EtcdErrorFields) => EtcdException;
  /** The message that etcd itself uses. */
  readonly message: string;
}

const meanings: Readonly<Record<number, Meaning>> = {
  100: { ErrorClass: EtcdKeyNotFound, message: 'Key not found' },
  101: { ErrorClass: EtcdCompareFailed, message: 'Compare failed' },
  102: { ErrorClass: EtcdNotFile, message: 'Not a file' },
  104: { ErrorClass: EtcdNotDir, message: 'Not a directory' },
  105: { ErrorClass: EtcdAlreadyExist, message: 'Key already exists' },
  107: { ErrorClass: EtcdRootReadOnly, message: 'Root is read only' },
  108: { ErrorClass: EtcdDirNotEmpty, message: 'Directory not empty' },
  110: { ErrorClass: EtcdInsufficientPermissions, message: 'The request requires user authentication' },
  200: { ErrorClass: EtcdValueError, message: 'Value is Required in POST form' },
  201: { ErrorClass: EtcdValueError, message: 'PrevValue is Required in POST form' },
  202: { ErrorClass: EtcdValueError, message: 'The given TTL in POST form is not a number' },
  203: { ErrorClass: EtcdValueError, message: 'The given index in POST form is not a number' },
  204: { ErrorClass: EtcdValueError, message: 'Value or TTL is required in POST form' },
  205: { ErrorClass: EtcdValueError, message: 'The given timeout in POST form is not a number' },
  206: { ErrorClass: EtcdValueError, message: 'Name is required in POST form' },
  207: { ErrorClass: EtcdValueError, message: 'Index or value is required' },
  208: { ErrorClass: EtcdValueError, message: 'Index and value cannot both be specified' },
  209: { ErrorClass: EtcdValueError, message: 'Invalid field' },
  210: { ErrorClass: EtcdValueError, message: 'Invalid POST form' },
  211: { ErrorClass: EtcdValueError, message: 'Value provided on refresh' },
  212: { ErrorClass: EtcdValueError, message: 'A TTL must be provided on refresh' },
  300: { ErrorClass: EtcdException, message: 'Raft Internal Error' },
  301: { ErrorClass: EtcdLeaderElectionInProgress, message: 'During Leader Election' },
  400: { ErrorClass: EtcdWatcherCleared, message: 'watcher is cleared due to etcd recovery' },
  401: { ErrorClass: EtcdEventIndexCleared, message: 'The event in requested index is outdated and cleared' },
};

/** Returns the error for an etcd error number, with `words` and etcd's `cause` as its message. */
export function fromErrorCode(errorCode: number, words: string, fields: EtcdErrorFields): EtcdException {
  const ErrorClass = meanings[errorCode]?.ErrorClass ?? EtcdException;
  return new ErrorClass(fields.cause ? `${words} (${fields.cause})` : words, { ...fields, errorCode });
}

/** Returns the error for an etcd error number, with the message that etcd itself uses for that number. */
export const etcdError = (errorCode: number, cause: string, index: number): EtcdException =>
  fromErrorCode(errorCode, messageOf(errorCode), { cause, index });

/** Returns etcd's message for one of its error numbers. */
export const messageOf = (errorCode: number): string => meanings[errorCode]?.message ?? 'Unknown error';
