/** Hosts of control planes for operators: their state, and how many clusters they can have. */
export const KUBERNETES_HOST_STATES = ['bootstrapping', 'ready', 'degraded', 'error'] as const

export interface HostMemory {
  readonly memoryBytes: number
  readonly reservedBytes: number
}

/** The clusters that it has, and as many more of that size as fit into its memory. */
export const clustersCapacity = (
  { memoryBytes, reservedBytes }: HostMemory,
  clustersHosted: number,
  bytesOfNext: number,
): number => clustersHosted + Math.max(0, Math.floor((memoryBytes - reservedBytes) / bytesOfNext))
