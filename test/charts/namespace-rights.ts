/** What the chart tells its pods of their rights in namespaces. */
import { type Agent, request } from 'undici'
import type { RealCluster } from '../cluster/real-cluster.ts'

interface Deployment {
  readonly spec: { template: { spec: { containers: { env: { name: string; value?: string }[] }[] } } }
}

/** Of the release `cloud`, whose API server and controllers get the same settings. */
export async function namespaceRights(cluster: RealCluster, dispatcher: Agent): Promise<string> {
  const told = ['cloud-apiserver', 'cloud-controllers'].map(async (name) => {
    const response = await request(`${cluster.url}/apis/apps/v1/namespaces/svccloud-system/deployments/${name}`, {
      dispatcher,
      headers: { authorization: `Bearer ${cluster.token}` },
    })
    const { spec } = (await response.body.json()) as Deployment // as the path answers
    return spec.template.spec.containers[0]?.env.find((each) => each.name === 'SVCCLOUD_NAMESPACE_RIGHTS')?.value
  })
  const [one = '', ...others] = new Set(await Promise.all(told))
  if (others.length > 0) throw new Error('the processes are told different rights')
  return one
}
