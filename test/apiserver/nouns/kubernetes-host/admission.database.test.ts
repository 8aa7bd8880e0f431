/** What people may do past the API to hosts of control planes that the platform makes, and to what they consist of. */
import { expect, test } from 'vitest'
import type { AdmissionParts } from '../../../../apiserver/kit/admission/kind.ts'
import type { AdmissionRequest } from '../../../../apiserver/kit/admission/review.ts'
import { KINDS } from '../../../../apiserver/nouns.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import type { ResourceType } from '../../../../kit/kube/object.ts'
import { KubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import { KubernetesHost } from '../../../../resources/kubernetes-host/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'

const database = useDatabase()

const asked = async (type: ResourceType, request: Partial<AdmissionRequest>) => {
  const kind = KINDS.find(({ resource }) => resource === type)
  // The rules that are asked here look at the database only.
  return kind?.admit({ db: database.db } as AdmissionParts, request as AdmissionRequest)
}
const host = { metadata: { name: 'h', uid: 'u' }, spec: { region: 'eu-7' } } as never // as far as rules read it

test('a host is made through the API only, and stays while clusters have their control planes there', async () => {
  await expect(asked(KubernetesHost, { operation: 'CREATE', object: host })).rejects.toThrow('by the platform only')
  const change = { operation: 'UPDATE' as const, object: host, oldObject: host }
  await expect(asked(KubernetesHost, change)).rejects.toThrow('by the platform only')
  const deletion = { operation: 'DELETE' as const, oldObject: host }
  expect(await asked(KubernetesHost, deletion)).toEqual([])
  const cluster = { id: 'shop', zone: 'eu-7a', region: 'eu-7', name: 'shop', network_id: 'back', replicas: 1 }
  const cidrs = { pod_cidr: '172.20.0.0/16', service_cidr: '172.21.0.0/16' }
  const account = { account_id: await createAccount(database.db), control_plane_id: newUuid(systemRandom) }
  await database.db
    .insertInto('kubernetes_cluster')
    .values({ ...cluster, ...cidrs, ...account, release: '1.36.3' })
    .execute()
  await expect(asked(KubernetesHost, deletion)).rejects.toThrow('1 clusters have their control planes there.')
})

test('where the control plane of a cluster runs is said by the platform only', async () => {
  const spec = { zone: 'eu-7a', name: 'shop', networkId: 'back', version: '1.36' }
  const of = (more: object) => ({ metadata: { name: 'shop', namespace: 'n' }, spec: { ...spec, ...more } }) as never
  const change = { operation: 'UPDATE' as const, object: of({ controlPlaneRegion: 'eu-1' }), oldObject: of({}) }
  await expect(asked(KubernetesCluster, change)).rejects.toThrow('spec.controlPlaneRegion is written by the platform')
})
