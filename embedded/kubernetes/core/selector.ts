/** Label and field selectors: parsed once for each request, evaluated for each object. */
import { ownMember } from './json.ts'
import { badRequest } from './status.ts'

type Labels = Readonly<Record<string, string>>
export type LabelSelector = (labels: Labels) => boolean

export interface FieldRequirement {
  readonly field: string
  readonly isNegated: boolean
  readonly value: string
}

const ABSENT = /(?<absent>!)\s*(?<absentKey>[^\s=!(),]+)/.source
const EQUAL = /(?<equals>==|=|!=)\s*(?<value>[^\s=!(),]*)/.source
const IN_SET = /\s(?<set>in|notin)\s*\((?<values>[^()]*)\)/.source
const COMPARED = /(?<than>[<>])\s*(?<number>\d+)/.source
const REQUIREMENT = new RegExp(
  String.raw`^\s*(?:${ABSENT}|(?<key>[^\s=!(),<>]+)\s*(?:${EQUAL}|${IN_SET}|${COMPARED})?)\s*$`,
)

/** A comma that is not between parentheses. */
const OUTSIDE_COMMA = /,(?![^()]*\))/

/** `a=b,c!=d,e in (x,y),f,!g`; undefined or empty selects everything. */
export function parseLabelSelector(text: string | undefined): LabelSelector | undefined {
  if (text === undefined || text.trim() === '') return undefined
  const tests = text.split(OUTSIDE_COMMA).map((part) => labelTest(part, text))
  return (labels) => tests.every((test) => test(labels))
}

function labelTest(part: string, whole: string): LabelSelector {
  const groups = REQUIREMENT.exec(part)?.groups
  if (!groups)
    throw badRequest(
      `unable to parse requirement: found '${part.trim()}', expected: a label selector (in ${JSON.stringify(whole)})`,
    )
  const { absentKey, key = '', equals, value = '', set, values = '', than, number } = groups
  if (absentKey !== undefined) return (labels) => !Object.hasOwn(labels, absentKey)
  if (equals === '!=') return (labels) => ownMember(labels, key) !== value
  if (equals !== undefined) return (labels) => ownMember(labels, key) === value
  if (than !== undefined) {
    const limit = Number(number)
    return (labels) => {
      const text = ownMember(labels, key) ?? ''
      return /^\d+$/.test(text) && (than === '>' ? Number(text) > limit : Number(text) < limit)
    }
  }
  if (set === undefined) return (labels) => Object.hasOwn(labels, key)
  const wanted = new Set(values.split(',').map((item) => item.trim()))
  return set === 'in'
    ? (labels) => wanted.has(ownMember(labels, key) ?? '\0')
    : (labels) => !wanted.has(ownMember(labels, key) ?? '\0')
}

/** `metadata.name=x,spec.node!=y`. The resource decides which fields exist. */
export function parseFieldSelector(text: string | undefined): readonly FieldRequirement[] {
  if (text === undefined || text.trim() === '') return []
  return text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => {
      const found = /^([^=!]+)(==|=|!=)(.*)$/.exec(part)
      if (!found) throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`)
      return { field: (found[1] ?? '').trim(), isNegated: found[2] === '!=', value: (found[3] ?? '').trim() }
    })
}
