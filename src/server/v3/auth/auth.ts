import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../../base/time.ts';
import type { EtcdVersion } from '../../version.ts';
import { compare, FROM_KEY, type KeyRange } from '../bytes.ts';
import * as errors from '../errors.ts';
import type * as api from '../messages.ts';
import { type Access, allows, PERMISSION_TYPES } from './permissions.ts';
import { Tokens } from './tokens.ts';

/** Name of the user, and of the role, that may do everything. */
const ROOT = 'root';

const ALL_KEYS: api.Permission = { permType: PERMISSION_TYPES.indexOf('READWRITE'), key: '', range_end: FROM_KEY };

interface User {
  readonly name: string;
  /** A digest; undefined: the user has no password, and cannot log in by one. */
  password: Buffer | undefined;
  readonly roles: Set<string>;
}

/** The users and roles of etcd v3, and what they may do. Passwords are kept as plain digests: this server is for tests. */
export class Auth {
  readonly #tokens: Tokens;
  readonly #version: EtcdVersion;
  readonly #users = new Map<string, User>();
  /** The permissions of each role, in the order of their keys. */
  readonly #roles = new Map<string, readonly api.Permission[]>();
  #isEnabled = false;
  #revision = 1n;

  constructor(clock: Clock, version: EtcdVersion) {
    this.#tokens = new Tokens(clock);
    this.#version = version;
  }

  get isEnabled(): boolean {
    return this.#isEnabled;
  }

  /** Number of changes of users and roles. */
  get revision(): bigint {
    return this.#revision;
  }

  /**
   * Returns the user that a token stands for; undefined without a token, and while authentication is not enabled.
   * @throws {EtcdV3Refusal} if the token is not valid. On etcd 3.4, none is while authentication is not enabled
   */
  userOf(token: string | undefined): string | undefined {
    if (token === undefined || (!this.#isEnabled && this.#version !== '3.4')) return undefined;
    const user = this.#tokens.use(this.#version === '3.4' ? token : token.replace(/^Bearer /, ''));
    if (user === undefined) throw errors.invalidAuthToken();
    return user;
  }

  /** @throws {EtcdV3Refusal} if authentication is enabled, and there is no user */
  require(user: string | undefined): void {
    if (this.#isEnabled && user === undefined) throw errors.emptyUser();
  }

  /** @throws {EtcdV3Refusal} if the user may not access all keys of a range */
  check(user: string | undefined, access: Access, range: KeyRange): void {
    if (!this.#isEnabled) return;
    if (user === undefined) throw errors.emptyUser();
    if (this.hasRole(user, ROOT)) return;
    const permissions = this.rolesOf(user).flatMap((role) => this.#roles.get(role) ?? []);
    if (!allows(permissions, access, range)) throw errors.permissionDenied();
  }

  /**
   * @param isOwn whether the request is about the user, or one of the user's roles
   * @throws {EtcdV3Refusal} if the user may not administer users and roles
   */
  checkAdmin(user: string | undefined, isOwn: (user: string) => boolean = () => false): void {
    // Without a user, the name is empty in etcd as well.
    if (!this.#isEnabled || isOwn(user ?? '')) return;
    if (user === undefined) throw errors.emptyUser();
    if (!this.hasRole(user, ROOT)) throw errors.permissionDenied();
  }

  hasRole(user: string, role: string): boolean {
    return this.#users.get(user)?.roles.has(role) ?? false;
  }

  enable(): void {
    if (this.#isEnabled) return;
    const root = this.#users.get(ROOT);
    if (!root) throw errors.noRootUser();
    if (!root.roles.has(ROOT)) throw errors.noRootRole();
    this.#isEnabled = true;
  }

  disable(): void {
    if (!this.#isEnabled) return;
    this.#isEnabled = false;
    this.#tokens.revoke();
    this.#changed();
  }

  /** Returns a token. */
  authenticate({ name, password }: api.NameAndPassword, revision: bigint): string {
    if (!this.#isEnabled) throw errors.authNotEnabled();
    const user = this.#users.get(name);
    if (user && !user.password) throw errors.noPasswordUser();
    if (!user?.password || !timingSafeEqual(user.password, digest(password))) throw errors.authFailed();
    return this.#tokens.assign(user.name, revision); // one string for all tokens: a name may be long
  }

  get users(): readonly string[] {
    return [...this.#users.keys()].sort(compare);
  }

  rolesOf(user: string): readonly string[] {
    return [...this.#user(user).roles].sort(compare);
  }

  addUser({ name, password, options }: api.UserAddRequest): void {
    if (name === '') throw errors.emptyUser();
    if (this.#users.has(name)) throw errors.userExists();
    const hidden = options?.no_password ? undefined : digest(password);
    this.#users.set(name, { name, password: hidden, roles: new Set() });
    this.#changed();
  }

  deleteUser(name: string): void {
    if (this.#isEnabled && name === ROOT) throw errors.invalidAuthManagement();
    this.#user(name);
    this.#users.delete(name);
    this.#tokens.revoke(name);
    this.#changed();
  }

  changePassword({ name, password }: api.NameAndPassword): void {
    const user = this.#user(name);
    // One without a password stays so. From etcd 3.5 on, nobody can log in after a change to an empty password.
    const isKept = password !== '' || this.#version === '3.4';
    if (user.password) user.password = isKept ? digest(password) : NEVER;
    this.#tokens.revoke(name);
    this.#changed();
  }

  grantRole(user: string, role: string): void {
    const { roles } = this.#user(user);
    if (role !== ROOT) this.permissionsOf(role);
    if (roles.has(role)) return;
    roles.add(role);
    this.#changed();
  }

  revokeRole(user: string, role: string): void {
    if (this.#isEnabled && user === ROOT && role === ROOT) throw errors.invalidAuthManagement();
    if (!this.#user(user).roles.delete(role)) throw errors.roleNotGranted();
    this.#changed();
  }

  get roles(): readonly string[] {
    return [...this.#roles.keys()].sort(compare);
  }

  permissionsOf(role: string): readonly api.Permission[] {
    const permissions = this.#roles.get(role);
    if (!permissions) throw errors.roleNotFound();
    return permissions;
  }

  /** Returns the permissions that a request for a role shows: from etcd 3.6 on, root's are for all keys. */
  shownPermissionsOf(role: string): readonly api.Permission[] {
    const permissions = this.permissionsOf(role);
    return role === ROOT && this.#version === '3.6' ? [ALL_KEYS] : permissions;
  }

  addRole(name: string): void {
    if (name === '') throw errors.emptyRole();
    if (this.#roles.has(name)) throw errors.roleExists();
    this.#roles.set(name, []);
    this.#changed();
  }

  deleteRole(role: string): void {
    if (this.#isEnabled && role === ROOT) throw errors.invalidAuthManagement();
    this.permissionsOf(role);
    this.#roles.delete(role);
    for (const { roles } of this.#users.values()) roles.delete(role);
    this.#changed();
  }

  grantPermission(role: string, permission: api.Permission | undefined): void {
    // etcd 3.4 ends with an error of its own, at each start again.
    if (!permission) throw errors.permissionNotGiven();
    if (this.#version !== '3.4' && !isRange(permission)) throw errors.invalidAuthManagement();
    this.#roles.set(role, withPermission(this.permissionsOf(role), permission));
    this.#changed();
  }

  revokePermission(role: string, range: KeyRange): void {
    const permissions = this.permissionsOf(role);
    const others = permissions.filter((other) => !isSameRange(other, range));
    if (others.length === permissions.length) throw errors.permissionNotGranted();
    this.#roles.set(role, others);
    this.#changed();
  }

  #user(name: string): User {
    const user = this.#users.get(name);
    if (!user) throw errors.userNotFound();
    return user;
  }

  #changed(): void {
    this.#revision += 1n;
  }
}

/** The digest of no password. */
const NEVER = Buffer.alloc(32);

const digest = (password: string): Buffer => createHash('sha256').update(password).digest();

/** Whether there can be a key in it. */
const isRange = ({ key, range_end: end }: KeyRange): boolean =>
  key !== '' && (end === '' || end === FROM_KEY || key < end);

/**
 * Adds a permission. Like etcd, replaces one for the same range only if it is the first one with its key: otherwise, there are two.
 */
function withPermission(permissions: readonly api.Permission[], added: api.Permission): readonly api.Permission[] {
  const at = permissions.findIndex(({ key }) => key >= added.key);
  const first = permissions[at];
  if (first && isSameRange(first, added)) return permissions.with(at, added);
  return [...permissions, added].sort((one, other) => compare(one.key, other.key));
}

const isSameRange = (one: KeyRange, other: KeyRange): boolean =>
  one.key === other.key && one.range_end === other.range_end;
