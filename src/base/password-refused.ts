import { EtcdInsufficientPermissions } from '../errors.ts';

/**
 * An `EtcdInsufficientPermissions` for a password that a function gives: a later one may be right, so a hold tries again until its
 * lease ends.
 */
export class PasswordRefused extends EtcdInsufficientPermissions {
  override get name(): string {
    return 'EtcdInsufficientPermissions';
  }
}
