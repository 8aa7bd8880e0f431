import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { startRealCluster } from '../cluster/real-cluster.ts'
import { storeContract } from './store.ts'

storeContract('a real kube-apiserver', async () => {
  const cluster = await startRealCluster()
  const { transport, close } = openHttpsTransport(await readKubeconfig(cluster.kubeconfigFile, systemClock))
  const store = openClient({ transport, fieldManager: 'contract', clock: systemClock, random: systemRandom })
  return {
    store,
    async close() {
      await close()
      await cluster.stop()
    },
  }
})
