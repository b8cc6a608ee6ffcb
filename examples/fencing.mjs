// The database rejects writes of a process that has not noticed the loss of its lock. Needs `npm install sql.js`.
// (SQLite; PostgreSQL's max() is greatest().)
import { EtcdClient, EtcdStaleToken, Fence, LockManager } from 'etcd-v2-lock';
import initSqlJs from 'sql.js';

const { Database } = await initSqlJs();
const db = new Database();
db.run('CREATE TABLE fences (resource TEXT PRIMARY KEY, token INTEGER NOT NULL)');
db.run('CREATE TABLE reports (name TEXT PRIMARY KEY, text TEXT NOT NULL)');

// Raises the stored token to the given one if that is higher, and returns the stored token: one statement, in the transaction
// of the write. If each transaction has its own connection, create the Fence in the transaction: it only wraps this function.
const fence = new Fence((resource, token) => {
  const raise = `INSERT INTO fences VALUES (?, ?)
    ON CONFLICT (resource) DO UPDATE SET token = max(fences.token, excluded.token) RETURNING token`;
  return db.exec(raise, [resource, token], { useBigInt: true })[0].values[0][0];
});

async function write(text, token) {
  db.run('BEGIN');
  try {
    await fence.accept('report', token);
    db.run("INSERT INTO reports VALUES ('daily', ?) ON CONFLICT (name) DO UPDATE SET text = excluded.text", [text]);
    db.run('COMMIT');
  } catch (error) {
    db.run('ROLLBACK');
    throw error;
  }
}

const endpoints = process.env.ETCD_ENDPOINTS?.split(',') ?? ['http://127.0.0.1:2379'];
const [client, another] = [new EtcdClient({ endpoints }), new EtcdClient({ endpoints })];

const sleeper = await new LockManager(client).acquire('examples/fencing');
// etcd does this when a process is suspended for longer than its TTL.
await fetch(`${endpoints[0]}/v2/keys${sleeper.key}`, { method: 'DELETE' });
await new LockManager(another).request('examples/fencing', (held) => write('by the next holder', held.fencingToken));

await write('by the sleeper', sleeper.fencingToken).catch((error) => {
  if (!(error instanceof EtcdStaleToken)) throw error;
  console.log(`refused: ${error.message}`);
});
console.log('the report was written', db.exec('SELECT text FROM reports')[0].values[0][0]);

await sleeper.release();
await Promise.all([client.close(), another.close()]);
