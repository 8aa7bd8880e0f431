/** `docs/changing.md`: what changing a field does, from the registrations of the nouns. */
import type { Route } from '../kit/http/route.ts'
import { MANAGED, RESOURCES } from '../resources/index.ts'
import {
  type ManagedChange,
  type ManagedField,
  type ManagedNoun,
  membersOf,
  setBy,
  specFieldOf,
} from '../resources/kit/managed.ts'

const START = `# What changing a field does

<!-- Generated from the registrations of the nouns by \`npm run generate\`; never edited by hand. -->

Programs that keep infrastructure as it is written down change in place what can be changed in place. For any other
change they delete the object and create another. Fields that are not in these tables are facts, or change by
themselves.

The operations are those that REST, the command line and MCP start. For some fields of servers, \`kubectl\` starts
[others](kubernetes.md#a-server). Its fields are in \`spec\`.
`

const code = (text: string): string => `\`${text}\``
const listed = (names: readonly string[]): string => names.map(code).join(', ')
/** As words of a sentence: the noun is named as in ids of routes. */
const titleOf = (noun: string): string =>
  noun
    .replaceAll('_', ' ')
    .replace(/\bssh\b/, 'SSH')
    .replace(/\bip\b/, 'IP')
    .replace('kubernetes', 'Kubernetes')
const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)

const conditionOf = (values: object): string =>
  Object.entries(values)
    .map(([name, value]) => `${code(name)} is ${Array.isArray(value) ? 'empty' : code(String(value))}`)
    .join(' and ')

/** What changes do to an attribute. */
function effectOf(changes: readonly ManagedChange[], name: string, { freeWith, changedBy }: ManagedField): string {
  if (changes.length === 0)
    return changedBy === undefined
      ? 'cannot be changed'
      : `not in place, only${operationOf([changedBy]).replace(',', '')} over REST`
  const isGrowing = changes.some((change) => 'grows' in change && change.grows)
  const needs = Object.assign({}, ...changes.map((change) => ('needs' in change ? change.needs : {}))) as object
  const [on] = changes.flatMap((change) => ('on' in change && change.on !== undefined ? [change.on] : []))
  const isRolling = changes.some((change) => 'rolls' in change && change.rolls?.includes(name))
  const routes = changes.flatMap((change) => ('each' in change ? [change.add, change.remove] : [change.by]))
  return [
    'in place',
    on === undefined ? '' : ` on its ${code(on)}`,
    isGrowing ? ', never to a smaller value' : '',
    Object.keys(needs).length === 0 ? '' : ` while ${conditionOf(needs)}`,
    operationOf(routes),
    isRolling ? '; its machines are replaced one after another' : '',
    freeWith === undefined ? '' : `; the service chooses it while ${code(freeWith)} is set`,
  ].join('')
}

/** The operations that routes start; those that also answer 200 start one where something must apply the change. */
function operationOf(routes: readonly Route[]): string {
  const kinds = [...new Set(routes.flatMap(({ starts }) => starts))]
  if (kinds.length === 0) return ''
  const isAlways = routes.every(({ answers }) => answers[200] === undefined)
  return `, by ${listed(kinds)}${isAlways ? '' : ' where hosts must apply it'}`
}

/** The effect on each attribute that people write, in their order. */
function effectsOf({ routes, changes, fields = {}, leaves = [], parent }: ManagedNoun): ReadonlyMap<string, string> {
  const insteadOf = Object.values(fields).map(({ creates }) => creates?.field)
  const created = Object.keys(membersOf(routes.create.body))
  const wishes = [
    ...(parent === undefined ? [] : [parent.field]),
    ...created.filter((name) => !leaves.includes(name) && !insteadOf.includes(name)),
    ...changes.flatMap((change) => Object.keys(setBy(change))),
  ]
  return new Map(
    wishes.map((name) => {
      const setting = changes.filter((change) => name in setBy(change))
      return [name, effectOf(setting, name, fields[name] ?? {})]
    }),
  )
}

/** The fields with each effect, in one row. */
function tableOf(noun: ManagedNoun): string {
  const { key = noun.noun, fields = {} } = noun
  const spec = membersOf(RESOURCES.find(({ singular }) => singular === key.replaceAll('_', ''))?.spec)
  const elsewhere = noun.changes.flatMap((change) =>
    'on' in change && change.on !== undefined ? Object.keys(setBy(change)) : [],
  )
  const isOther = (name: string): boolean => fields[name]?.isEdited === true || elsewhere.includes(name)
  const inKubectl = (names: readonly string[]) => listed(names.map(specFieldOf).filter((field) => field in spec))
  const rows = Map.groupBy(effectsOf(noun), ([, effect]) => effect)
  const edited = Object.keys(fields).filter((name) => fields[name]?.isEdited === true)
  const lines = [...rows].map(([effect, pairs]) => {
    const names = pairs.map(([name]) => name)
    return `| ${listed(names)} | ${inKubectl(names.filter((name) => !isOther(name)))} | ${effect} |`
  })
  return [
    '| Field | In `kubectl` | Change |',
    '|---|---|---|',
    ...lines,
    ...(edited.length === 0 ? [] : [`| | ${inKubectl(edited)} | in place |`]),
  ].join('\n')
}

function aboutOf({ names, uniqueIn, removeNeeds, routes, fields = {} }: ManagedNoun): string {
  const unseen = (isSecret: boolean) =>
    Object.entries(fields).flatMap(([name, field]) =>
      field.shows === 'nothing' && (field.isSecret ?? false) === isSecret ? [name] : [],
    )
  const places = { account: 'in the account', zone: 'in the zone', parent: 'in what it belongs to' }
  return [
    `Found by ${listed(names)}, ${uniqueIn === undefined ? 'which need not be unique' : `unique ${places[uniqueIn]}`}.`,
    ...(removeNeeds === undefined ? [] : [`It can be deleted while ${conditionOf(removeNeeds)}.`]),
    ...(routes.remove === undefined ? ['Nothing deletes it.'] : []),
    ...(unseen(true).length === 0 ? [] : [`Secret, and never shown: ${listed(unseen(true))}.`]),
    ...(unseen(false).length === 0 ? [] : [`Not shown: ${listed(unseen(false))}.`]),
  ].join(' ')
}

/** Lines of at most 120 columns. */
const wrapped = (text: string): string => text.replaceAll(/(?=.{121})(.{1,120}) /g, '$1\n')

/** The text of the page. */
export const changesPage = (): string =>
  [
    START,
    ...MANAGED.map((noun) =>
      [`## ${capital(titleOf(noun.noun))}`, wrapped(aboutOf(noun)), `${tableOf(noun)}\n`].join('\n\n'),
    ),
  ].join('\n')
