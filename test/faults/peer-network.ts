import { Link, type LinkOptions } from './link.ts';
import { type Relay, startRelay } from './relay.ts';

/** The network between the members of one cluster: each is reached through its own relay. */
export interface PeerNetwork {
  /** The peer URLs to advertise, in the order of the members. */
  readonly urls: readonly string[];
  /** Sets the URL at which a member listens to the others. */
  connect(index: number, peerUrl: string): void;
  /** Silently drops everything from and to this member from now on. */
  isolate(index: number): void;
  /** Lets new connections of this member work, and resets the silent ones, so that members connect again. */
  rejoin(index: number): void;
  isIsolated(index: number): boolean;
  stop(): Promise<void>;
}

/** One peer's connection to another. */
class PeerLink extends Link {
  readonly to: string;
  /** Unknown until the peer has named itself. */
  from: string | undefined;

  constructor(to: string, ...[client, target, options]: ConstructorParameters<typeof Link>) {
    super(client, target, options);
    this.to = to;
  }
}

export async function startPeerNetwork(size: number): Promise<PeerNetwork> {
  const targets = new Map<string, string>();
  const isolated = new Set<string>();

  /** While a member is isolated, a connection without a known sender (such as a probe) may come from that member. */
  const isBlocked = ({ from, to }: PeerLink) =>
    isolated.has(to) || (from === undefined ? isolated.size > 0 : isolated.has(from));

  async function startPeer(): Promise<Relay<PeerLink>> {
    const relay: Relay<PeerLink> = await startRelay((client) => {
      const to = relay.url;
      const options: LinkOptions = {
        lost: isolated.has(to) ? ['requests', 'answers'] : [],
        look(direction, bytes) {
          if (direction === 'requests') link.from ??= senderIn(bytes);
          if (isBlocked(link)) link.lose('requests', 'answers');
        },
      };
      const link = new PeerLink(to, client, targets.get(to) ?? to, options);
      return link;
    });
    return relay;
  }

  const relays = await Promise.all(Array.from({ length: size }, startPeer));
  const urls = relays.map(({ url }) => url);
  const urlOf = (index: number): string => {
    const url = urls[index];
    if (url === undefined) throw new Error(`no member ${index}`);
    return url;
  };
  const links = () => relays.flatMap((relay) => [...relay.links]);

  return {
    urls,
    connect(index, peerUrl) {
      targets.set(urlOf(index), peerUrl);
    },
    isolate(index) {
      isolated.add(urlOf(index));
      // A link with an unknown sender is checked at its next request, which may name the sender.
      const known = links().filter((link) => isolated.has(link.to) || (link.from !== undefined && isBlocked(link)));
      for (const link of known) link.lose('requests', 'answers');
    },
    rejoin(index) {
      isolated.delete(urlOf(index));
      for (const link of links()) if (link.lost.size > 0 && !isBlocked(link)) link.reset();
    },
    isIsolated: (index) => isolated.has(urlOf(index)),
    async stop() {
      await Promise.all(relays.map((relay) => relay.stop()));
    },
  };
}

/** The peer URL of the member that sent this request: etcd sends the URL when it opens a stream or posts a message. */
const senderIn = (bytes: Buffer): string | undefined =>
  /^(?:GET|POST) [\s\S]*?\r\nx-peerurls: *([^\s,]+)/i.exec(bytes.toString('latin1', 0, 4096))?.[1];
