/** Every operation names the resource that it changes, from its request until long after the resource is deleted. */
import { describe, expect, test } from 'vitest'
import { ofHistory, ofObject } from '../../../../apiserver/nouns/operation/views.ts'
import { finished } from '../../../../controllers/kit/operation/record.ts'
import { OPERATION_KINDS, stepsOf } from '../../../../domain/operations.ts'
import { carrierTypeOf, namedTarget } from '../../../../resources/operation/index.ts'

const AT = '2026-01-01T00:00:00Z'
const ID = '0198c2f4-0000-7000-8000-000000000001'

describe('an operation has its resource, as an object and in the history', () => {
  test.each(OPERATION_KINDS)('%s', (kind) => {
    const target = { ...namedTarget(carrierTypeOf(kind), { name: ID, spec: { name: 'shop' } }), name: 'shop' }
    const spec = {
      kind,
      target,
      actor: 'user:1',
      requestId: 'r',
      createdAt: AT,
      deadlineAt: AT,
      stepCount: stepsOf(kind).length,
    }
    const object = { apiVersion: '', kind: 'Operation', metadata: { name: 'op' }, spec }
    const resource = { type: target.type, id: ID, name: 'shop' }
    expect(ofObject(object).resource).toEqual(resource)
    const progress = {
      id: 'op',
      kind,
      status: 'succeeded' as const,
      step: '',
      stepIndex: 0,
      stepCount: 1,
      error: '',
      actor: 'user:1',
      createdAt: AT,
      deadlineAt: AT,
      finishedAt: AT,
    }
    const recorded = JSON.parse(JSON.stringify(finished(object, progress, [], new Date(AT)))) as ReturnType<
      typeof finished
    >
    expect(ofHistory(recorded).resource).toEqual(resource)
    // Records from before the names.
    expect(ofHistory({ ...recorded, target: { type: target.type, id: ID } }).resource).toEqual({
      ...resource,
      name: null,
    })
  })
})

test('the name is what people call the resource, and never only an id', () => {
  const named = (spec: object, name = ID) => namedTarget('server', { name, spec }).name
  expect(named({ hostname: 'web', title: 'Shop' })).toBe('web')
  expect(named({ name: 'back', title: 'x' })).toBe('back')
  expect(named({ title: 'Disk' })).toBe('Disk')
  expect(named({ title: '', address: '192.0.2.1' })).toBe('192.0.2.1')
  expect(named({ title: '' })).toBeUndefined()
  expect(named({}, 'node-a1')).toBe('node-a1')
  expect(named({ title: 'é'.repeat(300) })).toHaveLength(255)
})
