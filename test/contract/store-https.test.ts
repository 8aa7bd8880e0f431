import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startKubernetesApi } from '../../embedded/kubernetes/server/serve.ts'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { storeContract } from './store.ts'

storeContract('the embedded API over HTTPS', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'store-https-'))
  const server = await startKubernetesApi({
    folder,
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  })
  const { transport, close } = openHttpsTransport(await readKubeconfig(server.kubeconfig, systemClock))
  return {
    store: openClient({ transport, fieldManager: 'contract', clock: systemClock, random: systemRandom }),
    async close() {
      await close()
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
})
