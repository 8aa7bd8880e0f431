/** Resource limits for workloads of a playground, in each of its namespaces, with defaults for workloads without any. A
 *  limit that the customer removes is restored; the size of the guest is the final limit. */
import { z } from 'zod'
import type { ControlPlaneGuest } from '../../../../integrations/control-planes/control.ts'
import { apply, type KubeApi, send } from '../../kube-api.ts'

const NAME = 'playground'
const NAMESPACES_MAXIMUM = 50
const Namespaces = z.object({
  items: z.array(z.object({ metadata: z.object({ name: z.string(), deletionTimestamp: z.string().optional() }) })),
})
const DEFAULTS = {
  default: { cpu: '250m', memory: '128Mi' },
  defaultRequest: { cpu: '50m', memory: '64Mi' },
}

/** May be repeated. */
export async function applyLimits(api: KubeApi, guest: ControlPlaneGuest): Promise<void> {
  const { text } = await send(api, 'GET', `/api/v1/namespaces?limit=${NAMESPACES_MAXIMUM}`)
  for (const { metadata } of Namespaces.parse(JSON.parse(text)).items) {
    if (metadata.name.startsWith('kube-') || metadata.deletionTimestamp !== undefined) continue
    const path = `/api/v1/namespaces/${metadata.name}`
    await apply(api, `${path}/limitranges`, {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: NAME },
      spec: { limits: [{ type: 'Container', ...DEFAULTS }] },
    })
    await apply(api, `${path}/resourcequotas`, {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: NAME },
      spec: { hard: hardOf(guest) },
    })
  }
}

/** A playground does not support services of type LoadBalancer. */
const hardOf = ({ vcpus, memoryMebibytes, storageGibibytes, pods, volumes }: ControlPlaneGuest) => ({
  pods: String(pods),
  'requests.cpu': String(vcpus),
  'limits.cpu': String(vcpus),
  'requests.memory': `${memoryMebibytes}Mi`,
  'limits.memory': `${memoryMebibytes}Mi`,
  persistentvolumeclaims: String(volumes),
  'requests.storage': `${storageGibibytes}Gi`,
  'services.loadbalancers': '0',
})
