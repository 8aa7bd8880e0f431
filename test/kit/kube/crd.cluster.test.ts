import { expect, test } from 'vitest'
import { openClient } from '../../../kit/kube/client.ts'
import { installCrds } from '../../../kit/kube/crd.ts'
import { crds } from '../../../controllers/kit/crds.ts'
import { openHttpsTransport } from '../../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../../kit/kube/kubeconfig.ts'
import { CustomResourceDefinition, type ResourceType } from '../../../kit/kube/object.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { startRealCluster } from '../../cluster/real-cluster.ts'
import { tryKindRules } from '../../resources/kind-rules.ts'

test(
  'a real kube-apiserver takes our definitions as they are, keeps every field, and finds nothing to complain of, ' +
    'and keeps their rules',
  async () => {
    const cluster = await startRealCluster()
    const { transport, close } = openHttpsTransport(await readKubeconfig(cluster.kubeconfigFile, systemClock))
    try {
      const store = openClient({ transport, fieldManager: 'installation', clock: systemClock, random: systemRandom })
      await installCrds(store, crds(), systemClock)
      await installCrds(store, crds(), systemClock)
      for (const crd of crds()) {
        const stored = await store.get(
          CustomResourceDefinition as ResourceType<
            unknown,
            { conditions: { type: string; status: string; message: string }[] }
          >,
          { name: crd.metadata.name },
        )
        expect(stored?.spec, crd.metadata.name).toMatchObject(crd.spec)
        expect(
          stored?.status?.conditions.filter(({ type }) => type === 'NonStructuralSchema'),
          crd.metadata.name,
        ).toEqual([])
      }
      await tryKindRules(store)
    } finally {
      await close()
      await cluster.stop()
    }
  },
)
