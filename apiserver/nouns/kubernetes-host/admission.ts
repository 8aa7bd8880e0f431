/** Hosts of control planes are created through the API; people remove them with kubectl. */
import { conflict } from '../../../domain/problem.ts'
import { countClustersOf } from '../../../db/kubernetes-host/index.ts'
import type { KubernetesHostSpec, KubernetesHostStatus } from '../../../resources/kubernetes-host/index.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from '../../kit/admission/kind.ts'
import type { HostObject } from './bootstrap.ts'

/** Throws 409 while clusters have their control planes there. */
async function validateDeletion({ db }: AdmissionParts, host: HostObject): Promise<readonly AdmittedChange[]> {
  const { region } = host.spec
  const hosted = (await countClustersOf(db, [region])).get(region) ?? 0
  if (hosted > 0 && host.metadata.deletionTimestamp === undefined)
    throw conflict('in_use', `${hosted} clusters have their control planes there.`, {
      resource: { type: 'kubernetes_host', id: host.metadata.name },
    })
  return []
}

export const kubernetesHostAdmission: AdmissionRules<KubernetesHostSpec, KubernetesHostStatus> = {
  delete: validateDeletion,
}
