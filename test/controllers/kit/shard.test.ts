import { describe, expect, test } from 'vitest'
import { inShard, parseShard, WHOLE } from '../../../controllers/kit/shard.ts'

describe('shards', () => {
  const zones = parseShard('zones:b,a')
  const others = parseShard('others:a,b')

  test('every zone has exactly one shard, also one that nobody named', () => {
    for (const zone of ['a', 'b', 'c']) expect([zones, others].filter((shard) => shard.ownsZone(zone))).toHaveLength(1)
  })
  test('the work of no zone is done once', () =>
    expect([zones, others].filter((shard) => shard.hasCommonWork)).toEqual([others]))
  test('each has a separate leader, for any order of its zones', () => {
    expect(zones.name).toBe('controllers-a.b')
    expect(others.name).toBe('controllers')
  })
  test('nothing said is the whole', () => expect([parseShard(undefined), parseShard('')]).toEqual([WHOLE, WHOLE]))
  test.each(['a', 'zones:', 'zones:A', 'others:a,', 'zone:a'])('refuses %j', (text) =>
    expect(() => parseShard(text)).toThrow('names no shard'),
  )
  test('objects belong to the shard of the zone in their spec', () => {
    const inZone = (zone: string) => ({ apiVersion: 'v1', kind: 'Any', metadata: { name: 'x' }, spec: { zone } })
    expect(inShard(zones)(inZone('a'))).toBe(true)
    expect(inShard(zones)(inZone('c'))).toBe(false)
  })
})
