/** Hosts of control planes as operators see them: how they are, and how many clusters they can have. */
export const KUBERNETES_HOST_STATES = ['bootstrapping', 'ready', 'degraded', 'error'] as const

export interface HostMemory {
  readonly memoryBytes: number
  readonly reservedBytes: number
}

/** Those that it has, and as many of that size as its memory has room for. */
export const clustersCapacity = (
  { memoryBytes, reservedBytes }: HostMemory,
  clustersHosted: number,
  bytesOfNext: number,
): number => clustersHosted + Math.max(0, Math.floor((memoryBytes - reservedBytes) / bytesOfNext))
