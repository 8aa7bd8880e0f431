/** What follows from the list of controllers, and what must agree with it. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { CONTROLLERS, INTENT_HANDLERS, OPERATION_TARGETS } from '../../controllers/index.ts'
import { targetTypeOf } from '../../controllers/operation/record.ts'
import { OPERATION_KINDS } from '../../domain/operations.ts'
import { API_GROUP } from '../../resources/define.ts'
import { OPERATION_TARGETS as TARGET_TYPES } from '../../resources/operation/index.ts'

test('every controller has a queue of its own, and every finalizer one controller', () => {
  const names = CONTROLLERS.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  const finalizers = CONTROLLERS.flatMap(({ finalizer }) => (finalizer === undefined ? [] : [finalizer]))
  expect(new Set(finalizers).size).toBe(finalizers.length)
})

test('no kind of operation has a flow with two nouns', () => {
  const kinds = CONTROLLERS.flatMap(({ operationKinds }) => operationKinds)
  expect(kinds.length).toBeGreaterThan(0)
  expect(new Set(kinds).size).toBe(kinds.length)
  for (const kind of kinds) expect(OPERATION_KINDS).toContain(kind)
})

test('servers, nodes and public pools have operations', () => {
  expect(OPERATION_TARGETS.map(({ kind }) => kind)).toEqual(['Server', 'Node', 'PublicPool'])
  expect(INTENT_HANDLERS.map(({ resourceType }) => resourceType)).toEqual(['server', 'server_group'])
})

test('operations name every noun that has them, and no noun has two handlers of intents', () => {
  for (const { kind } of OPERATION_TARGETS) expect(TARGET_TYPES).toContain(targetTypeOf(kind))
  const types = INTENT_HANDLERS.map(({ resourceType }) => resourceType)
  expect(new Set(types).size).toBe(types.length)
})

test('every controller reconciles kinds of the group that the chart lets them at whole', async () => {
  expect([...new Set(CONTROLLERS.map(({ resource }) => resource.group))]).toEqual([API_GROUP])
  const access = await readFile('charts/svccloud/templates/access.yaml', 'utf8')
  const [, role = ''] = /-controllers\n([\s\S]*?)\n---/.exec(access) ?? []
  expect(role).toContain(
    `apiGroups: [${API_GROUP}]\n    resources: ["*"]\n    verbs: [get, list, watch, create, patch,`,
  )
})
