import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.Lease;
import io.etcd.jetcd.Lock;
import io.etcd.jetcd.lease.LeaseKeepAliveResponse;
import io.etcd.jetcd.lock.LockResponse;
import io.etcd.jetcd.support.CloseableClient;
import io.grpc.stub.StreamObserver;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Contends for a lock by jetcd's Lock, with one lease: see ../../../../README.md for the commands it reads. */
public final class Contender {
  private final Lock locks;
  private final ByteSequence name;
  private final Lease leases;
  private final long lease;
  private final CloseableClient keepAlive;
  private ByteSequence key;

  private Contender(Client client, String name, long ttl) throws Exception {
    this.locks = client.getLockClient();
    this.name = ByteSequence.from(name, StandardCharsets.UTF_8);
    this.leases = client.getLeaseClient();
    this.lease = leases.grant(ttl).get().getID();
    this.keepAlive = leases.keepAlive(lease, new KeepAlive());
  }

  public static void main(String[] args) {
    try {
      Client client = Client.builder().endpoints(args[0]).build();
      Contender contender = new Contender(client, args[1], Long.parseLong(args[2]));
      BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = commands.readLine(); line != null; line = commands.readLine()) {
        contender.run(line.split(" "));
      }
      contender.keepAlive.close();
      contender.leases.revoke(contender.lease).get();
    } catch (Exception error) {
      error.printStackTrace();
      System.exit(1);
    }
    System.exit(0);
  }

  private void run(String[] command) throws Exception {
    switch (command[0]) {
      case "hold" -> hold();
      case "release" -> {
        release();
        say("released");
      }
      case "cycle" -> {
        for (int times = Integer.parseInt(command[1]); times > 0; times--) {
          count(Path.of(command[2]), hold());
          release();
        }
        say("cycled");
      }
      default -> throw new IllegalArgumentException(command[0]);
    }
  }

  /** Waits for the lock and prints its token: the store's revision when the server's mutex got the lock. */
  private long hold() throws Exception {
    LockResponse response = locks.lock(name, lease).get();
    key = response.getKey();
    long token = response.getHeader().getRevision();
    say("held " + token);
    return token;
  }

  private void release() throws Exception {
    locks.unlock(key).get();
  }

  /** Adds 1 to the counter, reading and then writing it, while nobody else is inside. */
  private static void count(Path directory, long token) throws IOException {
    Path inside = Files.createDirectory(directory.resolve("inside"));
    Path counter = directory.resolve("counter");
    int seen = Integer.parseInt(Files.readString(counter).strip());
    Files.writeString(counter, Integer.toString(seen + 1));
    Files.writeString(directory.resolve("history"), "jetcd " + token + "\n", StandardOpenOption.APPEND);
    Files.delete(inside);
  }

  private static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }

  private static final class KeepAlive implements StreamObserver<LeaseKeepAliveResponse> {
    @Override
    public void onNext(LeaseKeepAliveResponse response) {}

    @Override
    public void onError(Throwable error) {
      error.printStackTrace();
      System.exit(1);
    }

    @Override
    public void onCompleted() {}
  }
}
