/** What holds for the changes of every noun. */
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { KINDS } from '../../apiserver/nouns.ts'
import { CHANGES } from '../../changes/index.ts'
import { actionOf, auditActionOf } from '../../changes/kit/define.ts'
import { startOf } from '../../controllers/kit/detect-change.ts'
import { operationActionOf } from '../../controllers/kit/operation/stanza.ts'
import type { Route } from '../../kit/http/route.ts'
import type { Resource } from '../../resources/kit/define.ts'
import { type Edit, EDITS } from './edits.ts'

interface AnyRule {
  readonly name: string
  readonly action?: string
  readonly operation?: string
  readonly needs?: string
  readonly sets?: readonly string[]
  readonly claim?: unknown
  readonly claimed?: string
  readonly release?: unknown
  readonly by?: { readonly route: Route }
}

const NOUNS = CHANGES.map((noun) => {
  const changes: readonly AnyRule[] = noun.changes
  const rules: readonly AnyRule[] = [
    noun.create,
    ...(noun.copy === undefined ? [] : [noun.copy]),
    ...changes,
    noun.remove,
  ]
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

  test('require, audit and start what their routes say', () => {
    for (const { by, operation } of rules) {
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
      // A route whose changes have several actions makes one of them in a request: they set the same fields. What is
      // refused before its body is read has the action of the route.
      const actions = [...new Set(sharing.map((each) => auditActionOf(noun, each)))]
      expect(actions, route.id).toContain(route.audit)
      if (actions.length > 1) expect(new Set(sharing.map(({ sets }) => JSON.stringify(sets))).size, route.id).toBe(1)
      // One request is one write, which carries one operation.
      const kinds = sharing.flatMap((each) => (each.operation === undefined ? [] : [each]))
      expect(new Set(kinds.map(({ sets }) => JSON.stringify(sets))).size, route.id).toBeLessThanOrEqual(1)
    }
  })

  test('have one action each in the audit log, whoever asks for it, accepted or refused', () => {
    const kubectl = KINDS.find(({ resource }) => resource === noun.resource)
    const edits: Readonly<Record<string, Edit>> = EDITS[noun.name] ?? {}
    expect(Object.keys(edits)).toEqual(changes.map(({ name }) => name))
    const object = (spec: object) => ({ apiVersion: '', kind: noun.resource.kind, metadata: { name: 'x' }, spec })
    const actionsOf = (after: object | undefined, before: object | undefined) =>
      kubectl?.actionsOf({ object: after && object(after), oldObject: before && object(before) } as never)
    const some = Object.values(edits)[0]?.[0] ?? {}
    expect(actionsOf(some, undefined)).toEqual([auditActionOf(noun, noun.create)])
    expect(actionsOf(undefined, some)).toEqual([auditActionOf(noun, noun.remove)])
    for (const rule of changes) {
      const [before, after] = edits[rule.name] ?? [{}, {}]
      expect(actionsOf(after, before), rule.name).toEqual([auditActionOf(noun, rule)])
      if (rule.operation === undefined) continue
      // What the operation of an edit by kubectl is audited as.
      const operation = startOf(noun as never, object(after) as never, rule as never)
      expect(operationActionOf(operation) ?? 'update', rule.name).toBe(actionOf(rule))
    }
  })

  test('have separate names, and release nothing that they do not claim', () => {
    expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length)
    for (const { name, claim, claimed, operation, release } of rules) {
      if (release !== undefined || claimed !== undefined) expect(claim, name).toBeDefined()
      if (claimed !== 'by operation') continue
      expect(operation, name).toBeDefined()
      expect(release, name).toBeUndefined()
    }
  })

  test('refer to objects by fields of the spec', () => {
    for (const { field } of noun.refers) expect(Object.keys(kind.spec.shape)).toContain(field)
  })
})
