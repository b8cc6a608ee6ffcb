// A decorator for NestJS: the method runs while this process holds the lock, in one instance of the service at a time.
// TypeScript needs `experimentalDecorators`.
import 'reflect-metadata';
import { Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EtcdClient, LockManager, type RequestOptions } from 'etcd-v2-lock';

interface HasLocks {
  readonly locks: LockManager;
}

/** Runs the method of a class that has `locks` under the lock. */
function WithLock(name: string, options: RequestOptions & { readonly ifAvailable?: false } = {}) {
  return <Args extends unknown[], T>(
    _prototype: HasLocks,
    _method: string,
    descriptor: TypedPropertyDescriptor<(this: never, ...args: Args) => Promise<T>>,
  ): void => {
    const method = descriptor.value as (this: unknown, ...args: Args) => Promise<T>;
    descriptor.value = function (this: HasLocks, ...args: Args) {
      return this.locks.request(name, options, () => method.apply(this, args));
    };
  };
}

const endpoints = process.env['ETCD_ENDPOINTS']?.split(',') ?? 'http://127.0.0.1:2379';

@Injectable()
class Etcd extends EtcdClient implements OnApplicationShutdown {
  constructor() {
    super({ endpoints });
  }

  async onApplicationShutdown(): Promise<void> {
    // In an outage, close() rejects after five seconds with the keys that it could not remove.
    await this.close().catch((error: Error) => console.error(error.message));
  }
}

@Injectable()
class Reports implements HasLocks {
  readonly locks: LockManager;

  constructor(@Inject(LockManager) locks: LockManager) {
    this.locks = locks;
  }

  @WithLock('examples/nightly', { timeout: 60 })
  async write(day: string): Promise<string> {
    const { held } = await this.locks.query('examples/nightly');
    return `the report of ${day} is written by ${held[0]?.label === undefined ? 'nobody' : 'the holder'}`;
  }
}

@Module({
  providers: [
    Etcd,
    Reports,
    { provide: LockManager, useFactory: (etcd: Etcd) => new LockManager(etcd), inject: [Etcd] },
  ],
})
class App {}

const app = await NestFactory.createApplicationContext(App, { logger: ['error'] });
console.log(await app.get(Reports).write('Monday'));
await app.close();
