import { createPrivateKey } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeCertificate } from '../../../kit/sys/certificate.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'
import { ISSUER_URL, openIssuer } from './issuer.ts'
import { type Hosted, isWhole, kubeClient, newDesired, openHosted, untilState } from './hosted.ts'

let hosted: Hosted
let issuer: Awaited<ReturnType<typeof openIssuer>>
let desired: ReturnType<typeof newDesired>
beforeAll(async () => {
  issuer = await openIssuer()
  // Not the address that everything of this machine listens on: the controllers have to find it too.
  hosted = await openHosted({ host: '127.0.0.2', addresses: ['127.0.0.2'] })
  desired = newDesired({
    issuer: { url: ISSUER_URL, audience: 'cluster-1', keys: [issuer.jwk] },
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
