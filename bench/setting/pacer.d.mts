export class Pacer {
  constructor(delay: number);
  pass(action: () => void): void;
}
