/** An organisation platform of somebody else, as a server: what it received, and how it answers. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface FakePlatform {
  readonly url: string
  readonly token: string
  /** By the ids of the cloud, as they were received. */
  readonly clusters: Map<string, Record<string, unknown>>
  readonly requests: string[]
  /** Of the agent that it has clusters run. */
  agent: readonly object[]
  /** Instead of its answer. */
  fault: { readonly status: number; readonly text: string } | undefined
  close(): Promise<void>
}

export async function startFakePlatform(): Promise<FakePlatform> {
  const token = 'token of the cloud'
  const clusters = new Map<string, Record<string, unknown>>()
  const requests: string[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      const id = /^\/base\/v1\/clusters\/([^/]+)$/.exec(request.url ?? '')?.[1]
      requests.push(`${request.method} ${request.url}`)
      const answer = (status: number, body: unknown) =>
        response
          .writeHead(status, { location: '/elsewhere' })
          .end(typeof body === 'string' ? body : JSON.stringify(body))
      if (platform.fault !== undefined) return answer(platform.fault.status, platform.fault.text)
      if (request.headers.authorization !== `Bearer ${token}`) return answer(401, { detail: 'who are you?' })
      if (id === undefined) return answer(404, '')
      if (request.method === 'DELETE') return answer(clusters.delete(id) ? 204 : 404, '')
      clusters.set(id, JSON.parse(text) as Record<string, unknown>)
      return answer(200, { cluster_id: `c-${id}`, url: `https://platform.test/${id}`, agent: platform.agent })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // it listens
  const platform: FakePlatform = {
    url: `http://127.0.0.1:${port}/base/`,
    token,
    clusters,
    requests,
    agent: [],
    fault: undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return platform
}
