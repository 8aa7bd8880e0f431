/** Writes to the status of each Ingress of a playground where it is served. */
import { z } from 'zod'
import { type KubeApi, send } from '../../kube-api.ts'

const INGRESSES_MAXIMUM = 100
const Ingresses = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), namespace: z.string() }),
      status: z
        .object({
          loadBalancer: z
            .object({ ingress: z.array(z.object({ hostname: z.string().optional() }).loose()).default([]) })
            .prefault({}),
        })
        .prefault({}),
    }),
  ),
})

/** May be repeated. */
export async function applyIngressStatus(
  api: KubeApi,
  { hostname, port }: { readonly hostname: string; readonly port: number },
): Promise<void> {
  const { text } = await send(api, 'GET', `/apis/networking.k8s.io/v1/ingresses?limit=${INGRESSES_MAXIMUM}`)
  const served = { hostname, ports: [{ port, protocol: 'TCP' }] }
  for (const { metadata, status } of Ingresses.parse(JSON.parse(text)).items) {
    const { ingress } = status.loadBalancer
    if (ingress.length === 1 && JSON.stringify({ ...ingress[0] }) === JSON.stringify(served)) continue
    const path = `/apis/networking.k8s.io/v1/namespaces/${metadata.namespace}/ingresses/${metadata.name}/status`
    await send(api, 'PATCH', path, {
      body: { status: { loadBalancer: { ingress: [served] } } },
      type: 'application/merge-patch+json',
      accepted: [404],
    })
  }
}
