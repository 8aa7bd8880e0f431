/** What holds for the changes of every noun. */
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { CHANGES } from '../../changes/index.ts'
import { actionOf } from '../../changes/kit/define.ts'
import type { Route } from '../../kit/http/route.ts'
import type { Resource } from '../../resources/define.ts'

interface AnyRule {
  readonly name: string
  readonly action?: string
  readonly operation?: string
  readonly needs?: string
  readonly sets?: readonly string[]
  readonly claim?: unknown
  readonly release?: unknown
  readonly by?: { readonly route: Route }
}

const NOUNS = CHANGES.map((noun) => {
  const changes: readonly AnyRule[] = noun.changes
  const rules: readonly AnyRule[] = [noun.create, ...changes, noun.remove]
  // a kind is one of `resources/`, which has its schema and its rules
  const kind = noun.resource as unknown as Resource<z.ZodObject>
  return { noun, changes, rules, kind, name: noun.name }
})

describe.each(NOUNS)('the changes of a $name', ({ noun, changes, rules, kind }) => {
  test('leave no field of the spec that is neither set, nor fixed, nor written by the platform', () => {
    const accounted = [...noun.fixed, ...noun.platform, ...changes.flatMap(({ sets = [] }) => sets)]
    const fields = Object.keys(kind.spec.shape).filter((field) => field !== 'operation')
    expect([...new Set(accounted)].sort()).toEqual(fields.sort())
  })

  test('fix what the kind fixes', () => {
    const fixed = kind.rules.flatMap(({ message }) => /^(\w+) cannot be changed$/.exec(message)?.[1] ?? [])
    expect(fixed).toEqual(expect.arrayContaining([...noun.fixed]))
    // What the platform writes may change by the platform.
    expect([...noun.fixed, ...noun.platform]).toEqual(expect.arrayContaining(fixed))
  })

  test('require, audit and start what their routes say', () => {
    for (const { by, operation, ...rule } of rules) {
      if (by === undefined) continue
      const { route } = by
      const sharing = rules.filter((each) => each.by?.route === route)
      // What one of its changes needs, the request needs that may make all of them.
      const asked = sharing.map((each) => each.needs)
      expect(
        (['standing', 'verified'] as const).find((need) => asked.includes(need)),
        route.id,
      ).toBe(route.requiresStanding ? 'standing' : route.requiresVerifiedEmail ? 'verified' : undefined)
      if (operation !== undefined) expect(route.starts, route.id).toContain(operation)
      if (sharing.length === 1 || sharing.every((each) => actionOf(each) === actionOf(rule)))
        expect(`${noun.name}.${actionOf(rule)}`, route.id).toBe(route.audit)
      // One request is one write, which carries one operation.
      const kinds = sharing.flatMap((each) => (each.operation === undefined ? [] : [each]))
      expect(new Set(kinds.map(({ sets }) => JSON.stringify(sets))).size, route.id).toBeLessThanOrEqual(1)
    }
  })

  test('have names of their own, and give back nothing that they do not claim', () => {
    expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length)
    for (const { name, claim, release } of rules) if (release !== undefined) expect(claim, name).toBeDefined()
  })

  test('refer to objects by fields of the spec', () => {
    for (const { field } of noun.refers) expect(Object.keys(kind.spec.shape)).toContain(field)
  })
})
