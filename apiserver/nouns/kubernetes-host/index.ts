import { KubernetesHost } from '../../../resources/kubernetes-host/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'
import { kubernetesHostAdmission } from './admission.ts'
import type { HostParts } from './bootstrap.ts'
import { kubernetesHostEndpoints } from './endpoints.ts'

export const kubernetesHost = noun<HostParts>({
  name: 'kubernetes_host',
  kinds: [kind(KubernetesHost, { access: 'write', target: 'kubernetes_host', admission: kubernetesHostAdmission })],
  endpoints: kubernetesHostEndpoints,
})
