import { expect, test } from 'vitest'
import type { User } from '../../../embedded/kubernetes/core/object.ts'
import { openWidgetWorld, widget, WIDGETS, type World } from './world.ts'

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const alice: User = { name: 'alice', groups: ['system:authenticated'] }
const role = (kind: string, name: string, rules: object[], more: object = {}) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind,
  metadata: { name },
  rules,
  ...more,
})
const bind = (
  kind: string,
  name: string,
  roleKind: string,
  roleName: string,
  subject: object = { kind: 'User', name: 'alice' },
) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind,
  metadata: { name },
  subjects: [subject],
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: roleKind, name: roleName },
})
const READ = { apiGroups: ['example.dev'], resources: ['widgets'], verbs: ['get', 'list'] }
const as = (world: World, user: User, method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown) =>
  world.call(method, path, body, { 'content-type': 'application/json' }, user)

async function withRole(rules: object[]): Promise<World> {
  const world = await openWidgetWorld()
  await world.post(`${RBAC}/namespaces/default/roles`, role('Role', 'r', rules))
  await world.post(`${RBAC}/namespaces/default/rolebindings`, bind('RoleBinding', 'b', 'Role', 'r'))
  return world
}

test('nobody may do anything without a role', async () => {
  const world = await openWidgetWorld()
  expect((await as(world, alice, 'GET', WIDGETS)).body).toMatchObject({
    code: 403,
    reason: 'Forbidden',
    message:
      'widgets.example.dev is forbidden: User "alice" cannot list resource "widgets" in API group "example.dev" ' +
      'in the namespace "default"',
    details: { group: 'example.dev', kind: 'widgets' },
  })
  expect((await as(world, alice, 'GET', '/apis')).status).toBe(200)
  expect((await as(world, alice, 'GET', '/metrics')).status).toBe(403)
})

test('a role allows its verbs on its resources in its namespace, and nothing else', async () => {
  const world = await withRole([READ])
  expect((await as(world, alice, 'GET', WIDGETS)).status).toBe(200)
  expect((await as(world, alice, 'GET', `${WIDGETS}?watch=true&timeoutSeconds=1`)).status).toBe(403)
  expect((await as(world, alice, 'POST', WIDGETS, widget('a'))).status).toBe(403)
  expect((await as(world, alice, 'GET', `${WIDGETS}/a/status`)).status).toBe(403)
  expect((await as(world, alice, 'GET', '/apis/example.dev/v1/namespaces/kube-system/widgets')).status).toBe(403)
  expect((await as(world, alice, 'GET', '/apis/example.dev/v1/widgets')).status).toBe(403)
})

test('server-side apply creates only for users who may create, and changes for those who may patch', async () => {
  const world = await withRole([{ ...READ, verbs: ['patch'] }])
  const headers = { 'content-type': 'application/apply-patch+yaml' }
  const apply = (name: string) =>
    world.call('PATCH', `${WIDGETS}/${name}?fieldManager=alice`, widget(name), headers, alice)
  expect((await apply('new')).body).toMatchObject({
    code: 403,
    reason: 'Forbidden',
    message: expect.stringContaining('User "alice" cannot create resource "widgets" in API group "example.dev"'),
  })
  expect((await world.get(`${WIDGETS}/new`)).status).toBe(404)
  await world.post(WIDGETS, widget('old'))
  expect((await apply('old')).status).toBe(200)
  await world.post(`${RBAC}/namespaces/default/roles`, role('Role', 'c', [{ ...READ, verbs: ['create'] }]))
  await world.post(`${RBAC}/namespaces/default/rolebindings`, bind('RoleBinding', 'c', 'Role', 'c'))
  expect((await apply('new')).status).toBe(201)
})

test('a role may name its objects', async () => {
  const world = await withRole([{ ...READ, resourceNames: ['mine'] }])
  await world.post(WIDGETS, widget('mine'))
  expect((await as(world, alice, 'GET', `${WIDGETS}/mine`)).status).toBe(200)
  expect((await as(world, alice, 'GET', `${WIDGETS}/other`)).status).toBe(403)
  expect((await as(world, alice, 'GET', `${WIDGETS}?fieldSelector=metadata.name%3Dmine`)).status).toBe(200)
})

test('a role that names its objects allows neither lists of others nor what has no name yet', async () => {
  const world = await withRole([
    { ...READ, verbs: ['list', 'watch', 'create', 'deletecollection'], resourceNames: ['mine'] },
  ])
  await world.post(WIDGETS, widget('mine'))
  const status = async (method: 'GET' | 'POST' | 'DELETE', query: string, body?: unknown) =>
    (await as(world, alice, method, `${WIDGETS}${query}`, body)).status
  const [mine, other] = ['fieldSelector=metadata.name%3Dmine', 'fieldSelector=metadata.name%3Dother']
  expect(await status('GET', '')).toBe(403)
  expect(await status('GET', `?${other}`)).toBe(403)
  expect(await status('GET', '?fieldSelector=metadata.name!%3Dmine')).toBe(403)
  expect(await status('GET', '?watch=true&timeoutSeconds=1')).toBe(403)
  expect(await status('GET', `?watch=true&timeoutSeconds=1&${other}`)).toBe(403)
  expect(await status('DELETE', '')).toBe(403)
  expect(await status('POST', '', widget('mine'))).toBe(403)
  expect(await status('POST', `?${mine}`, widget('another'))).toBe(403)
  expect(await status('GET', `?${mine}`)).toBe(200)
  expect(await status('GET', `?watch=true&timeoutSeconds=1&${mine}`)).toBe(200)
  expect(await status('DELETE', `?${mine}`)).toBe(403)
})

test('cluster roles gather the rules of others by label', async () => {
  const world = await openWidgetWorld()
  await world.post(`${RBAC}/clusterroles`, {
    ...role('ClusterRole', 'part', [READ]),
    metadata: { name: 'part', labels: { part: 'yes' } },
  })
  await world.post(
    `${RBAC}/clusterroles`,
    role('ClusterRole', 'sum', [], { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { part: 'yes' } }] } }),
  )
  await world.post(`${RBAC}/clusterrolebindings`, bind('ClusterRoleBinding', 'b', 'ClusterRole', 'sum'))
  expect((await as(world, alice, 'GET', '/apis/example.dev/v1/widgets')).status).toBe(200)
  await world.remove(`${RBAC}/clusterroles/part`)
  expect((await as(world, alice, 'GET', '/apis/example.dev/v1/widgets')).status).toBe(403)
})

test('the agent of a node works in its own namespace only', async () => {
  const world = await openWidgetWorld()
  for (const name of ['node-n1', 'node-n2'])
    await world.post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  const agent: User = { name: 'system:node-agent:n1', groups: ['svccloud:nodes', 'system:authenticated'] }
  const lease = (node: string) => `/apis/coordination.k8s.io/v1/namespaces/node-${node}/leases`
  const heartbeat = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'heartbeat' } }
  expect((await as(world, agent, 'POST', lease('n1'), heartbeat)).status).toBe(201)
  expect((await as(world, agent, 'POST', lease('n2'), heartbeat)).status).toBe(403)
  expect((await as(world, agent, 'GET', '/apis/example.dev/v1/namespaces/node-n1/widgets')).status).toBe(403)
  expect((await as(world, agent, 'GET', WIDGETS)).status).toBe(403)
  const impostor: User = { name: 'system:node-agent:n1', groups: ['system:authenticated'] }
  expect((await as(world, impostor, 'GET', `${lease('n1')}/heartbeat`)).status).toBe(403)
})

test('reviews answer who may what', async () => {
  const world = await withRole([READ])
  const review = async (kind: string, spec: object, user: User) =>
    (
      await as(world, user, 'POST', `/apis/authorization.k8s.io/v1/${kind.toLowerCase()}s`, {
        apiVersion: 'authorization.k8s.io/v1',
        kind,
        spec,
      })
    ).body.status
  const attributes = (verb: string) => ({
    resourceAttributes: { verb, group: 'example.dev', resource: 'widgets', namespace: 'default' },
  })
  expect(await review('SelfSubjectAccessReview', attributes('list'), alice)).toEqual({ allowed: true })
  expect(await review('SelfSubjectAccessReview', attributes('delete'), alice)).toEqual({ allowed: false })
  expect(
    await review(
      'SubjectAccessReview',
      { user: 'alice', ...attributes('get') },
      { name: 'root', groups: ['system:masters'] },
    ),
  ).toEqual({ allowed: true })
  expect((await review('SelfSubjectRulesReview', { namespace: 'default' }, alice)).resourceRules).toContainEqual(READ)
})

test('a service account has tokens that die with it', async () => {
  const world = await openWidgetWorld()
  const accounts = '/api/v1/namespaces/default/serviceaccounts'
  await world.post(accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } })
  const asked = await world.post(`${accounts}/robot/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 600 },
  })
  const token: string = asked.body.status.token
  expect(world.core.engine.authenticate(token)).toMatchObject({
    name: 'system:serviceaccount:default:robot',
    groups: expect.arrayContaining(['system:serviceaccounts:default']),
  })
  expect(world.core.engine.authenticate(`${token.slice(0, -4)}AAAA`)).toBeUndefined()
  expect(world.core.engine.authenticate('nonsense')).toBeUndefined()
  await world.remove(`${accounts}/robot`)
  expect(world.core.engine.authenticate(token)).toBeUndefined()
})
