/** Starts the servers that scenarios are played against. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startKubernetesApi } from '../../embedded/kubernetes/server/serve.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { startRealCluster } from '../cluster/real-cluster.ts'
import type { Target } from './session.ts'

export type TargetName = 'real' | 'embedded'
export type RunningTarget = Target & { stop(): Promise<void> }

async function startEmbedded(): Promise<Omit<RunningTarget, 'name'>> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-embedded-'))
  const server = await startKubernetesApi({
    folder,
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  })
  const token = await server.issue(
    { user: 'admin', groups: ['system:masters'] },
    join(folder, 'conformance.kubeconfig'),
  )
  return {
    url: server.url,
    ca: server.authority,
    token,
    async stop() {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const starts: Record<TargetName, () => Promise<Omit<RunningTarget, 'name'>>> = {
  real: () => startRealCluster(),
  embedded: startEmbedded,
}

export async function startTarget(name: TargetName): Promise<RunningTarget> {
  return { name, ...(await starts[name]()) }
}
