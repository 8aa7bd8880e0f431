/** Starts the servers that scenarios are played against. */

import { startRealCluster } from '../cluster/real-cluster.ts'
import type { Target } from './session.ts'

export type TargetName = 'real' | 'embedded'
export type RunningTarget = Target & { stop(): Promise<void> }

const starts: Record<TargetName, () => Promise<Omit<RunningTarget, 'name'>>> = {
  real: () => startRealCluster(),
  embedded: () => Promise.reject(new Error('the embedded server cannot be started yet')),
}

export async function startTarget(name: TargetName): Promise<RunningTarget> {
  return { name, ...(await starts[name]()) }
}
