/** The credential plugin against a service that has tokens for one kind of cluster, on a real socket. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { openApiDocument } from '../../kit/http/openapi.ts'
import { route } from '../../kit/http/route.ts'
import { ROUTES } from '../../resources/index.ts'
import { type Ended, runLine } from './run-line.ts'

const ID = '0197f3a0-0000-4000-8000-00000000000'
const RUNNING = `${ID}1`
const STARTING = `${ID}2`
const UNTOLD = `${ID}3`
const CREDENTIAL = 'svc_test'

/** Its path is not what its kind would suggest: it is read from the document, not put together. */
const TOKEN_ROUTE = route({
  id: 'get_dev_cluster_token',
  method: 'GET',
  path: '/v1/dev-clusters/{id}/short-token',
  summary: 'Get a token',
  permission: 'read',
  isCredentialRead: true,
  params: z.strictObject({ id: z.string() }),
  answers: { 200: z.strictObject({ token: z.string(), expires_at: z.iso.datetime() }) },
  refuses: [404, 409, 503],
})

/** What the service answers, by path. */
const ANSWERS: Readonly<Record<string, readonly [number, object]>> = {
  '/openapi.json': [
    200,
    openApiDocument([...ROUTES.filter(({ id }) => !id.endsWith('_cluster_token')), TOKEN_ROUTE], {
      title: 'Test',
      description: 'Test',
      version: '1',
      serverUrl: '/',
    }),
  ],
  [`/v1/dev-clusters/${RUNNING}/short-token`]: [
    200,
    { token: 'header.claims.signature', expires_at: '2026-01-01T00:15:00Z' },
  ],
  [`/v1/dev-clusters/${STARTING}/short-token`]: [
    409,
    { title: 'Conflict', detail: 'The cluster is not running.', reason: 'state_not_allowed' },
  ],
  [`/v1/dev-clusters/${UNTOLD}/short-token`]: [200, { token: '', expires_at: 'soon' }],
}

let service: Server
let url: string

beforeAll(async () => {
  service = createServer((request, response) => {
    const [status, body] =
      request.headers.authorization === `Bearer ${CREDENTIAL}`
        ? (ANSWERS[request.url ?? ''] ?? [404, { title: 'Not Found' }])
        : [401, { title: 'Unauthorized' }]
    response
      .writeHead(status, {
        'content-type': status < 400 ? 'application/json' : 'application/problem+json',
        'x-request-id': 'r-1',
      })
      .end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(service.address() as AddressInfo).port}` // of a server that listens on TCP
})
afterAll(async () => {
  const closed = new Promise((resolve) => service.close(resolve))
  service.closeAllConnections() // clients keep theirs open for the next request
  await closed
})

const svccloud = (line: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  runLine(['exec-credential', ...line], {
    environment: { SVCCLOUD_URL: url, SVCCLOUD_TOKEN: CREDENTIAL, ...environment },
  })

test('a token becomes an ExecCredential, for every requested format', async () => {
  for (const more of [[], ['-o', 'yaml']]) {
    const { code, out, error } = await svccloud(['--cluster', `dev-cluster/${RUNNING}`, ...more])
    expect({ code, error }).toEqual({ code: 0, error: '' })
    expect(JSON.parse(out)).toEqual({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: 'header.claims.signature', expirationTimestamp: '2026-01-01T00:15:00Z' },
    })
  }
})

test('a service without the operation is one line and code 1', async () => {
  expect(await svccloud(['--cluster', `kubernetes-cluster/${RUNNING}`])).toEqual({
    code: 1,
    out: '',
    error:
      `svccloud: ${url} has no operation get_kubernetes_cluster_token: it provides no tokens for a ` +
      `kubernetes-cluster\n`,
  })
})

test.each([
  [
    'a cluster that does not run',
    STARTING,
    1,
    '409 Conflict: The cluster is not running.\n  reason state_not_allowed, request r-1',
  ],
  ['a cluster that is not there', `${ID}9`, 1, '404 Not Found'],
  ['an answer that is no token', UNTOLD, 1, 'did not return a token'],
])('%s is refused', async (_what, id, code, told) => {
  expect(await svccloud(['--cluster', `dev-cluster/${id}`])).toMatchObject({
    code,
    out: '',
    error: expect.stringContaining(told),
  })
})

test('a bad token and an absent service have their codes', async () => {
  expect(await svccloud(['--cluster', `dev-cluster/${RUNNING}`], { SVCCLOUD_TOKEN: 'other' })).toMatchObject({
    code: 2,
    out: '',
  })
  expect(await svccloud(['--cluster', `dev-cluster/${RUNNING}`], { SVCCLOUD_URL: 'http://127.0.0.1:9' })).toMatchObject(
    { code: 6, out: '' },
  )
})

test.each([
  [[]],
  [['--cluster']],
  [['--cluster', RUNNING]],
  [['--cluster', 'dev-cluster/']],
  [['--cluster', `Dev_Cluster/${RUNNING}`]],
  [['--cluster', `dev-cluster/${RUNNING}/x`]],
  [['--cluster', `dev-cluster/${RUNNING}`, 'more']],
])('the command line %j makes no sense', async (line) => {
  expect(await svccloud(line)).toMatchObject({ code: 4, out: '' })
})
