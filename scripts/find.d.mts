export function onPath(name: string): string[];
export function findPython(): string | undefined;
