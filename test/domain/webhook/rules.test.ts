import { describe, expect, test } from 'vitest'
import { NOUNS } from '../../../apiserver/nouns.ts'
import { Problem } from '../../../domain/problem.ts'
import {
  deliveryStateOf,
  effectOf,
  EVENT_RESOURCES,
  RETRY_SECONDS,
  requireUsable,
  retryAfterMilliseconds,
  selects,
  selectsBilling,
  STATE_RESOURCES,
} from '../../../domain/webhook/rules.ts'

describe('patterns', () => {
  test.each([
    ['server.state', 'server.state', true],
    ['server.state', 'server.created', false],
    ['server.*', 'server.created', true],
    ['server.*', 'server_group.created', false],
    ['*.deleted', 'server_group.deleted', true],
    ['*.*', 'audit.entry', true],
    ['*', 'operation.finished', true],
    ['*', 'billing.standing', false],
    ['*.standing', 'billing.standing', false],
    ['billing.*', 'billing.standing', true],
    ['billing.standing', 'billing.standing', true],
  ])('%s and %s: %s', (pattern, type, isSelected) => expect(selects(pattern, type)).toBe(isSelected))

  test('only patterns that name billing select it', () => {
    expect(selectsBilling(['*', '*.*', '*.standing'])).toBe(false)
    expect(selectsBilling(['server.*', 'billing.*'])).toBe(true)
  })
})

test('events are about nouns that exist', () => {
  const names = NOUNS.map(({ name }) => name)
  expect(EVENT_RESOURCES.filter((name) => !names.includes(name))).toEqual([])
  expect(EVENT_RESOURCES).toEqual(expect.arrayContaining([...STATE_RESOURCES]))
})

test.each([
  ['server.create', 'created'],
  ['floating_ip.allocate', 'created'],
  ['playground.start', 'created'],
  ['server.start', 'changed'],
  ['router.attach_network', 'changed'],
  ['floating_ip.release', 'deleted'],
  ['server.delete', 'deleted'],
])('%s: %s', (action, effect) => expect(effectOf(action)).toBe(effect))

describe('addresses', () => {
  const events = ['*']
  test.each([
    'https://hooks.example.com/',
    'https://hooks.example.com:8443/a?b=c',
    'https://93.184.216.34/',
    'https://[2606:4700::1]/',
  ])('%s is usable', (url) => expect(() => requireUsable({ url, events })).not.toThrow())

  test.each([
    'hooks.example.com',
    'http://hooks.example.com/',
    'ftp://hooks.example.com/',
    'https://ada@hooks.example.com/',
    'https://hooks.example.com/#a',
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://10.1.2.3/',
    'https://172.16.0.1/',
    'https://192.168.1.1/',
    'https://169.254.169.254/',
    'https://100.64.0.1/',
    'https://0.0.0.0/',
    'https://224.0.0.1/',
    'https://[::1]/',
    'https://[fe80::1]/',
    'https://[fd00::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[64:ff9b::10.0.0.1]/',
    'https://[2002:a00:1::]/',
  ])('%s is refused', (url) => expect(() => requireUsable({ url, events })).toThrow(Problem))
})

test('attempts are spread over three days, then the event is given up', () => {
  const total = RETRY_SECONDS.reduce((sum, seconds) => sum + seconds, 0)
  expect(total / 86_400).toBeCloseTo(3, 1)
  expect(retryAfterMilliseconds(1, 1 / 2)).toBe(5_000)
  expect(retryAfterMilliseconds(1, 0)).toBe(4_750)
  expect(retryAfterMilliseconds(RETRY_SECONDS.length, 1 / 2)).toBe(86_400_000)
  expect(retryAfterMilliseconds(RETRY_SECONDS.length + 1, 1 / 2)).toBeUndefined()
})

test('a disabled webhook is disabled, whether it was paused or not', () => {
  const paused = { pausedAt: new Date(0) }
  const hasSecret = true
  expect(deliveryStateOf({ hasSecret, enabled: true, pausedAt: null })).toBe('active')
  expect(deliveryStateOf({ hasSecret, enabled: true, ...paused })).toBe('paused')
  expect(deliveryStateOf({ hasSecret, enabled: false, ...paused })).toBe('disabled')
  expect(deliveryStateOf({ hasSecret: false, enabled: true, pausedAt: null })).toBe('no_secret')
})
