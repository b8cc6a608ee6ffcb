import { EtcdInsufficientPermissions, mayPass } from '../errors.ts';

/**
 * An `EtcdInsufficientPermissions` for a password that a function gives: a later one may be right, so a hold tries again until its
 * lease ends.
 */
export class PasswordRefused extends EtcdInsufficientPermissions {
  override get name(): string {
    return 'EtcdInsufficientPermissions';
  }
}

/** Whether a renewal that failed with this error may succeed later. */
export const mayPassAtRenewal = (error: unknown): boolean => mayPass(error) || error instanceof PasswordRefused;
