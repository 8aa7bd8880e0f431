/** Asking a real API server as an administrator, and as service accounts of the release. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { kubeconfig, type RealCluster } from '../cluster/real-cluster.ts'

/** Of the release. */
export const NAMESPACE = 'svccloud-system'
type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'

export interface Asking {
  readonly connections: Agent
  /** What the path answers to an administrator. */
  ask<Body>(method: Method, path: string, body?: object): Promise<Body>
  /** The status that a service account of the release gets. */
  statusOf(serviceAccount: string, method: Method, path: string, body?: object): Promise<number>
  /** A file in the folder: the kubeconfig of a service account of the release. */
  accessOf(serviceAccount: string, folder: string): Promise<string>
  close(): Promise<void>
}

export function openAsking(cluster: RealCluster): Asking {
  const connections = new Agent({ connect: { ca: cluster.ca } })
  const send = (token: string, method: Method, path: string, body?: object) =>
    request(cluster.url + path, {
      method,
      dispatcher: connections,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      },
      body: body ? JSON.stringify(body) : null,
    })
  async function ask<Body>(method: Method, path: string, body?: object): Promise<Body> {
    const response = await send(cluster.token, method, path, body)
    return (await response.body.json()) as Body // what the caller knows the path to answer
  }
  async function tokenOf(serviceAccount: string): Promise<string> {
    const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${serviceAccount}/token`
    const wanted = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    return (await ask<{ status: { token: string } }>('POST', path, wanted)).status.token
  }
  return {
    connections,
    ask,
    async statusOf(serviceAccount, method, path, body) {
      const response = await send(await tokenOf(serviceAccount), method, path, body)
      await response.body.dump()
      return response.statusCode
    },
    async accessOf(serviceAccount, folder) {
      const file = join(folder, `${serviceAccount}.kubeconfig`)
      const user = { token: await tokenOf(serviceAccount) }
      await writeFile(file, kubeconfig({ url: cluster.url, ca: cluster.ca, user }), { mode: 0o600 })
      return file
    },
    close: () => connections.destroy(),
  }
}
