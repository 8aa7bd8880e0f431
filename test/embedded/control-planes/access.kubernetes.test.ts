import 'reflect-metadata'
import { createPrivateKey, createPublicKey, sign, webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeCertificate } from '../../../kit/sys/certificate.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'
import { adminOf, type Hosted, isWhole, kubeClient, newDesired, openHosted, untilState } from './hosted.ts'

const URL = 'https://issuer.example.test'

/** Signs tokens, and has the public key by which they are judged. */
async function openIssuer() {
  const { key: pem } = await makeCertificate({ commonName: 'issuer', days: 1, now: new Date(), random: systemRandom })
  const key = createPrivateKey(pem)
  const { x = '', y = '' } = createPublicKey(pem).export({ format: 'jwk' })
  const jwk = { kty: 'EC', crv: 'P-256', x, y, kid: 'k1', alg: 'ES256', use: 'sig' }
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const token = (claims: object, signer = key): string => {
    const seconds = Math.floor(Date.now() / 1_000)
    const body = { iss: URL, aud: 'cluster-1', sub: 'user-1', iat: seconds, exp: seconds + 600, ...claims }
    const signed = `${part({ alg: 'ES256', kid: 'k1', typ: 'JWT' })}.${part(body)}`
    const signature = sign('sha256', Buffer.from(signed), { key: signer, dsaEncoding: 'ieee-p1363' })
    return `${signed}.${signature.toString('base64url')}`
  }
  return { jwk, token }
}

let hosted: Hosted
let issuer: Awaited<ReturnType<typeof openIssuer>>
let desired: ReturnType<typeof newDesired>
beforeAll(async () => {
  issuer = await openIssuer()
  hosted = await openHosted()
  desired = newDesired({
    issuer: { url: URL, audience: 'cluster-1', keys: [issuer.jwk] },
  })
  await hosted.host.ensure(desired)
})
afterAll(() => hosted.end())

const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments'
const ROLES = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
const CREATE_ROLE = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'mine' } }

test("tokens of the platform's issuer have the rights of their role, and no others", async () => {
  const state = await untilState(hosted, desired.id, isWhole)
  const now = Math.floor(Date.now() / 1_000)
  const stranger = createPrivateKey(
    (await makeCertificate({ commonName: 'x', days: 1, now: new Date(), random: systemRandom })).key,
  )
  const statusOf = async (token: string, path = DEPLOYMENTS) =>
    (await kubeClient(state, token).send('GET', path)).status
  const viewer = issuer.token({ account_role: 'viewer' })
  await until(
    'the issuer to be known',
    () => statusOf(viewer),
    (status) => status === 200,
  )
  const create = async (role: string) =>
    (await kubeClient(state, issuer.token({ account_role: role })).send('POST', ROLES, CREATE_ROLE)).status
  expect(await statusOf(viewer, '/api/v1/namespaces/default/secrets')).toBe(403)
  expect(await statusOf(issuer.token({ account_role: 'member' }), '/api/v1/namespaces/default/secrets')).toBe(200)
  expect([await create('viewer'), await create('member'), await create('owner')]).toEqual([403, 403, 201])
  const refused = {
    'another audience': issuer.token({ account_role: 'owner', aud: 'cluster-2' }),
    'another key': issuer.token({ account_role: 'owner' }, stranger),
    expired: issuer.token({ account_role: 'owner', iat: now - 900, exp: now - 60 }),
    'a long life': issuer.token({ account_role: 'owner', exp: now + 86_400 }),
    'an unknown role': issuer.token({ account_role: 'emperor' }),
    'no role': issuer.token({}),
  }
  for (const [what, token] of Object.entries(refused)) expect([what, await statusOf(token)]).toEqual([what, 401])
})

interface Request {
  readonly key: string
  readonly pem: string
}

async function newRequest(name: string): Promise<Request> {
  x509.cryptoProvider.set(webcrypto)
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    ...{ name: `O=system:nodes, CN=system:node:${name}`, keys, signingAlgorithm: algorithm },
  })
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
  return { key, pem: request.toString('pem') }
}

const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const asksFor = (name: string, { pem }: Request) => ({
  ...{ apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name } },
  spec: {
    request: Buffer.from(pem).toString('base64'),
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    usages: ['digital signature', 'client auth'],
  },
})

test('a node joins by the token of its pool, until that is revoked', async () => {
  const state = await untilState(hosted, desired.id, isWhole)
  const admin = await adminOf(hosted, desired.id)
  const { token } = await hosted.host.joinToken(desired.id, 'abcdef', 'pool-1', 600)
  expect((await hosted.host.joinToken(desired.id, 'abcdef', 'pool-1', 600)).token).toBe(token)
  expect(token).toMatch(/^abcdef\.[a-z0-9]{16}$/)
  const joiner = kubeClient(state, token)
  expect((await joiner.send('GET', '/api/v1/nodes')).status).toBe(403)
  const request = await newRequest('worker-1')
  expect((await joiner.send('POST', CSRS, asksFor('worker-1', request))).status).toBe(201)
  // Kubernetes approves it by itself, and signs it.
  const signed = await until(
    'the certificate of the node',
    () => admin.send('GET', `${CSRS}/worker-1`),
    ({ body }) => JSON.stringify(body['status']).includes('"certificate"'),
  )
  const { certificate } = signed.body['status'] as { certificate: string } // has been looked for
  const pem = Buffer.from(certificate, 'base64').toString()
  expect(new x509.X509Certificate(pem).subject).toContain('system:node:worker-1')
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-1', labels: { pool: 'pool-1' } } }
  expect((await admin.send('POST', '/api/v1/nodes', node)).status).toBe(201)
  expect(await hosted.host.nodes(desired.id)).toMatchObject([
    { name: 'worker-1', isReady: false, labels: { pool: 'pool-1' } },
  ])
  await hosted.host.removeJoinToken(desired.id, 'abcdef')
  await until(
    'the token to be refused',
    () => joiner.send('GET', '/api/v1/nodes'),
    ({ status }) => status === 401,
  )
})

test('a drain goes on as budgets allow', async () => {
  const admin = await adminOf(hosted, desired.id)
  const [pods, labels] = ['/api/v1/namespaces/default/pods', { app: 'web' }]
  const { id } = desired
  await until(
    'the service account of the namespace',
    () => admin.send('GET', '/api/v1/namespaces/default/serviceaccounts/default'),
    ({ status }) => status === 200,
  )
  const pod = {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', labels } },
    spec: { nodeName: 'worker-1', terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'none' }] },
  }
  expect((await admin.send('POST', pods, pod)).status).toBe(201)
  const running = { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } }
  await admin.send('PATCH', `${pods}/web/status`, running, 'application/merge-patch+json')
  const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
  const budget = {
    ...{ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'web' } },
    spec: { minAvailable: 1, selector: { matchLabels: labels } },
  }
  await admin.send('POST', budgets, budget)
  expect(await hosted.host.drain(id, 'worker-1')).toBe(false)
  expect((await admin.send('GET', `${pods}/web`)).status).toBe(200)
  const node = await admin.send('GET', '/api/v1/nodes/worker-1')
  expect(node.body['spec']).toMatchObject({ unschedulable: true })
  await admin.send('DELETE', `${budgets}/web`)
  await until(
    'the node to be empty',
    () => hosted.host.drain(id, 'worker-1'),
    (isDone) => isDone,
  )
  expect((await admin.send('GET', `${pods}/web`)).status).toBe(404)
  await hosted.host.removeNode(id, 'worker-1')
  expect(await hosted.host.nodes(id)).toEqual([])
})
