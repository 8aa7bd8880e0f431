/** Tables over the pure pieces. */
import { expect, test } from 'vitest'
import { durationText } from '../../../embedded/kubernetes/core/age.ts'
import { compareVersions } from '../../../embedded/kubernetes/core/discovery.ts'
import { compileJsonPath } from '../../../embedded/kubernetes/core/jsonpath.ts'
import { jsonPatch, mergePatch } from '../../../embedded/kubernetes/core/json-patch.ts'
import { parseLabelSelector } from '../../../embedded/kubernetes/core/selector.ts'
import { strategicMerge } from '../../../embedded/kubernetes/apply/strategic.ts'
import { parseJson } from '../../../embedded/kubernetes/core/body.ts'
import { jsonFromProtobuf } from '../../../embedded/kubernetes/server/protobuf.ts'
import type { Schema } from '../../../embedded/kubernetes/schema/schema.ts'

test.each([
  [0, '0s'],
  [119, '119s'],
  [139, '2m19s'],
  [600, '10m'],
  [3 * 3600 + 60, '3h1m'],
  [26 * 3600, '26h'],
  [3 * 86400 + 3600, '3d1h'],
  [400 * 86400, '400d'],
  [800 * 86400, '2y70d'],
  [-5, '<invalid>'],
])('%d seconds are %s', (seconds, text) => expect(durationText(seconds)).toBe(text))

test('versions are best first', () => {
  expect(['v1beta1', 'foo', 'v2', 'v1alpha2', 'v1', 'v1beta2', 'v10'].sort(compareVersions)).toEqual([
    'v10',
    'v2',
    'v1',
    'v1beta2',
    'v1beta1',
    'v1alpha2',
    'foo',
  ])
})

test.each([
  ['.spec.a', [1]],
  ['{.spec.a}', [1]],
  ['.spec.list[0].name', ['x']],
  ['.spec.list[*].name', ['x', 'y']],
  ['.spec.list[?(@.name=="y")].size', [2]],
  ['.metadata.annotations.a\\.b/c', ['dotted']],
  ['.nothing.here', []],
])('the path %s', (path, expected) => {
  const value = {
    metadata: { annotations: { 'a.b/c': 'dotted' } },
    spec: {
      a: 1,
      list: [
        { name: 'x', size: 1 },
        { name: 'y', size: 2 },
      ],
    },
  }
  expect(compileJsonPath(path)(value)).toEqual(expected)
})

test.each([
  ['a=1', true],
  ['a==1,b!=1', true],
  ['a in (2, 1)', true],
  ['a notin (1)', false],
  ['c notin (1)', true],
  ['b', true],
  ['!b', false],
  ['!c', true],
  ['a>0', true],
])('the selector %s', (text, expected) => expect(parseLabelSelector(text)?.({ a: '1', b: '2' })).toBe(expected))

test.each(['a b c', '=x', 'a in x', 'a===b'])('the selector %s is refused', (text) =>
  expect(() => parseLabelSelector(text)).toThrow('unable to parse requirement'),
)

test('merge patches remove with null and replace lists', () => {
  expect(mergePatch({ a: { b: 1, c: 2 }, l: [1, 2] }, { a: { b: null, d: { e: null, f: 1 } }, l: [3] })).toEqual({
    a: { c: 2, d: { f: 1 } },
    l: [3],
  })
})

test('a merge patch never reaches the prototype', () => {
  const merged = mergePatch({}, parseJson('{"__proto__":{"polluted":true}}').value)
  expect('polluted' in {}).toBe(false)
  expect(Object.keys(merged as object)).toEqual(['__proto__'])
})

test('JSON patches are all or nothing', () => {
  const before = { a: [1, 2], b: { c: 1 } }
  expect(
    jsonPatch(before, [
      { op: 'test', path: '/b/c', value: 1 },
      { op: 'add', path: '/a/-', value: 3 },
      { op: 'move', from: '/b/c', path: '/d' },
      { op: 'copy', from: '/a/0', path: '/e' },
    ]),
  ).toEqual({ a: [1, 2, 3], b: {}, d: 1, e: 1 })
  expect(before).toEqual({ a: [1, 2], b: { c: 1 } })
  expect(() => jsonPatch(before, [{ op: 'test', path: '/b/c', value: 2 }])).toThrow('the server rejected our request')
  expect(() => jsonPatch(before, [{ op: 'remove', path: '/nothing' }])).toThrow()
})

test('strategic merges go item by item where lists have keys', () => {
  const schema: Schema = {
    properties: { parts: { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] } },
  }
  const before = { parts: [{ name: 'a', size: 1 }, { name: 'b' }], other: [1] }
  expect(
    strategicMerge(
      before,
      { parts: [{ name: 'a', colour: 'red' }, { name: 'b', $patch: 'delete' }, { name: 'c' }], other: [2] },
      schema,
    ),
  ).toEqual({ parts: [{ name: 'a', size: 1, colour: 'red' }, { name: 'c' }], other: [2] })
})

test('members that occur twice are found wherever they are', () => {
  expect(parseJson('{"a":1,"b":{"c":[{"d":1,"d":2}]},"a":{"x":"}\\"{"}}').duplicates).toEqual(['b.c[0].d', 'a'])
})

test('protobuf becomes the equivalent JSON', () => {
  const field = (number: number, bytes: Buffer) =>
    Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes])
  const text = (number: number, value: string) => field(number, Buffer.from(value))
  const integer = (number: number, value: number) => Buffer.from([number << 3, value])
  const message = (apiVersion: string, kind: string, ...parts: Buffer[]) =>
    Buffer.concat([
      Buffer.from('k8s\0'),
      field(1, Buffer.concat([text(1, apiVersion), text(2, kind)])),
      field(2, Buffer.concat(parts)),
    ])
  const metadata = (...parts: Buffer[]) =>
    field(1, Buffer.concat([text(1, 'c'), text(2, ''), field(8, Buffer.alloc(0)), ...parts]))
  const entry = (key: string, value: string) => field(2, Buffer.concat([text(1, key), text(2, value)]))

  const configMap = message('v1', 'ConfigMap', metadata(), entry('k', 'v'), entry('__proto__', ''))
  expect(jsonFromProtobuf(configMap)).toBe(
    '{"metadata":{"name":"c"},"data":{"k":"v","__proto__":""},"apiVersion":"v1","kind":"ConfigMap"}',
  )
  const event = message(
    'v1',
    'Event',
    metadata(),
    field(6, integer(1, 60)),
    integer(8, 3),
    field(10, Buffer.concat([integer(1, 1), integer(2, 64), text(99, 'of a later version')])),
  )
  expect(JSON.parse(jsonFromProtobuf(event))).toMatchObject({
    firstTimestamp: '1970-01-01T00:01:00Z',
    count: 3,
    eventTime: '1970-01-01T00:00:01.000000Z',
  })
  const ports = [field(4, integer(2, 80)), field(4, Buffer.concat([integer(1, 1), text(3, 'http')]))].map((target) =>
    field(1, target),
  )
  expect(
    JSON.parse(jsonFromProtobuf(message('v1', 'Service', metadata(), field(2, Buffer.concat(ports))))),
  ).toMatchObject({ spec: { ports: [{ targetPort: 80 }, { targetPort: 'http' }] } })

  expect(() => jsonFromProtobuf(configMap.subarray(0, configMap.length - 3))).toThrow('damaged')
  expect(() => jsonFromProtobuf(Buffer.from('{}'))).toThrow('does not appear to be a protobuf message')
  expect(() => jsonFromProtobuf(message('apps/v1', 'Deployment', metadata()))).toThrow(
    'application/json, application/yaml',
  )
})
