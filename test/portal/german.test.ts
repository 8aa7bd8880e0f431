/** Words of the service that German has, and one word for one thing. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { documentFor } from '../../apiserver/kit/pages/documents.ts'
import { DEFAULT_QUOTAS } from '../../domain/account/quota.ts'
import steps from '../../portal/generated/steps.json' with { type: 'json' }
import { operatorGerman } from '../../portal/operator/texts/de.ts'
import { de } from '../../portal/texts/de.ts'
import { notes } from '../../portal/texts/de-notes.ts'
import { deObjectStorage } from '../../portal/texts/de-object-storage.ts'
import { deSettings } from '../../portal/texts/de-settings.ts'

const ROOT = join(import.meta.dirname, '../..')

const missingIn = (table: Readonly<Record<string, string>>, words: Iterable<string>): readonly string[] =>
  [...new Set(words)].filter((word) => !Object.hasOwn(table, word)).toSorted()

/** What enumerations of the document with this name may be. */
function* valuesOf(part: unknown, names: ReadonlySet<string>, name = ''): Generator<string> {
  if (typeof part !== 'object' || part === null) return
  const { enum: fixed, 'x-extensible-enum': open } = part as Readonly<Record<string, unknown>>
  // conditions of Kubernetes are shown as yes and no
  for (const values of [fixed, open])
    if (names.has(name) && Array.isArray(values) && !values.includes('True')) yield* values.map(String)
  for (const [key, member] of Object.entries(part))
    yield* valuesOf(member, names, ['anyOf', 'items', 'schema'].includes(key) || /^\d+$/.test(key) ? name : key)
}

describe('German', () => {
  it('has every operation, step and quota', () => {
    const kinds = Object.keys(steps).map((kind) => kind.split('.'))
    expect(
      missingIn(
        de.service.types,
        kinds.map(([type = '']) => type),
      ),
    ).toEqual([])
    expect(
      missingIn(
        de.service.verbs,
        kinds.map(([, verb = '']) => verb),
      ),
    ).toEqual([])
    expect(missingIn(de.service.steps, Object.values(steps).flat())).toEqual([])
    expect(missingIn(de.service.quotas, Object.keys(DEFAULT_QUOTAS))).toEqual([])
  })

  it('has every type of the audit log', () => {
    const sources = globSync('apiserver/**/*.ts', { cwd: ROOT }).map((file) => readFileSync(join(ROOT, file), 'utf8'))
    const types = sources.flatMap((source) =>
      [...source.matchAll(/\bresourceType: '(\w+)'/g)].map(([, type = '']) => type),
    )
    expect(types).toContain('identity')
    expect(missingIn(de.service.types, types)).toEqual([])
  })

  it('has every state, and every role of an edge', () => {
    const words = { ...de.choices.words, ...operatorGerman.words }
    const names = new Set(['state', 'status', 'payment_status', 'end_reason', 'algorithm', 'placement'])
    const documents = [documentFor('customer'), documentFor('operator')] as const
    const states = documents.flatMap((document) => [...valuesOf(document, names)])
    expect(states).toContain('started')
    expect(missingIn(words, states)).toEqual([])
    expect(missingIn(words, ['bastion', 'load_balancer', 'nat_gateway'])).toEqual([])
  })

  it.each([
    ['Protokoll', 'Audit-Log', /\bProtokoll(?!iert)/],
    ['Image', 'Abbild', /\bImages?\b/],
    ['Load Balancer', 'Lastverteiler', /Load Balancer/],
    ['Owner', 'Inhaber', /\bOwner\b/],
    ['Quote', 'Kontingent', /\bQuoten?\b/],
    ['misslungen', 'fehlgeschlagen', /[Mm]isslung|[Mm]isslingt/],
    ['noch einmal versuchen', 'erneut versuchen', /noch einmal (versuch|send)/],
    ['Sprungrechner', 'Bastion', /Sprung(rechner|host)/],
    ['Steuerung', 'Steuerungsebene', /\bSteuerung\b/],
    ['Startplatte', 'Startspeicher', /Startplatte/],
    ['Mail', 'E-Mail', /(?<!E-)\bMails?\b/],
    ['geräumt', 'geleert', /(?<!auf)geräumt/],
    ['anlegen', 'erstellen', /\b[Aa](nlegen|ngelegt)\b/],
  ])('has one word for one thing: not %s but %s', (_one, _other, pattern) => {
    // protocols of the network are called so
    const { firewall: _firewall, ...common } = de
    const { 'bmc.protocol': _protocol, ...fields } = operatorGerman.fields
    const parts = [common, { ...operatorGerman, fields }, deSettings, deObjectStorage, notes]
    const found = parts.flatMap(texts).filter((text) => pattern.test(text))
    expect(found).toEqual([])
  })
})

/** Texts of a catalogue, those of functions with something for each argument. */
function texts(part: unknown): readonly string[] {
  if (typeof part === 'string') return [part]
  if (typeof part === 'function') return texts(part('1', '1', '1', '1'))
  return typeof part === 'object' && part !== null ? Object.values(part).flatMap(texts) : []
}
