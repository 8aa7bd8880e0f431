/** Each noun of customers from its form to its deletion, by the mouse and by the keyboard alone: it is refused, made,
 *  found in its list, changed and deleted. */
import type { Page } from 'playwright-core'
import { beforeAll, describe, inject, it } from 'vitest'
import operations from '../../../portal/generated/operations.json' with { type: 'json' }
import { answerAs } from './kit/answered.ts'
import { open, usePortal } from './kit/browser.ts'
import { type Hands, mouseOf } from './kit/hands.ts'
import { keyboardOf } from './kit/keyboard.ts'
import { addAddresses, HOSTILE, type Life, LIVES, rename } from './kit/lives.ts'
import type { Person } from './kit/person.ts'
import { newStaff } from './kit/staff.ts'

const portal = usePortal()

const REFUSED = /^(This form is not accepted|Lower-case letters, digits and dashes)/

const HANDS = [
  ['mouse', mouseOf],
  ['keyboard', keyboardOf],
] as const

const heading = ({ page }: Hands, name: string) => page.getByRole('heading', { level: 1, name, exact: true })

/** Nothing that would put off what comes next is in progress. */
const ready = (page: Page) => page.getByRole('group', { name: 'Progress' }).waitFor({ state: 'detached' })

/** Answers its name. */
async function create(hands: Hands, life: Life, name: string): Promise<string> {
  const { page, press, fill, answer, sees } = hands
  const { path, one, named, from, button = `Create ${one}` } = life
  await open(page, path)
  if (from === undefined) {
    await press(button, 'link')
    await heading(hands, button).waitFor()
  } else await from(hands)
  if (named !== undefined) await fill(named, HOSTILE)
  await life.fill?.(hands)
  if (life.refuse !== undefined) await life.refuse(hands)
  else {
    await press(button)
    await sees(REFUSED)
  }
  if (named !== undefined) await fill(named, name)
  if (from !== undefined) {
    await answer(button)
    return name
  }
  await press(button)
  if (life.hasSecret === true) {
    await hands.dialog('Keep this now')
    await answer('I have kept them')
  }
  await heading(hands, button).waitFor({ state: 'detached' })
  return (await page.getByRole('heading', { level: 1 }).innerText()).trim()
}

async function live(hands: Hands, life: Life, { by, person }: { by: string; person: Person }): Promise<void> {
  const { page, press, fill, menu, dialog, answer, sees } = hands
  const { path, one, named = 'Name', typed, ends = 'Delete' } = life
  const name = await create(hands, life, `by-${by}`)
  await open(page, path)
  await press(name, 'link')
  await heading(hands, name).waitFor()
  await ready(page)
  const now = await (life.change?.(hands, name, person) ?? rename(hands, named, name))
  await heading(hands, now).waitFor()
  await ready(page)
  await menu(ends)
  await dialog(`${ends} ${now}?`)
  if (typed !== undefined) await fill(`Type ${typed(name, now)} to confirm`, typed(name, now))
  await answer(ends)
  await sees(`This ${one} is deleted`)
}

/** The answer to whoever asks for the deleted one, or for a part of it. */
function absentAt(noun: string): RegExp {
  const paths: Readonly<Record<string, { readonly path: string }>> = operations
  const path = paths[`get_${noun}`]?.path
  if (path === undefined) throw new Error(`no operation reads one ${noun}`)
  return new RegExp(`status of 404 .*${path.replace('{id}', '[^/]+')}(/|\\?|$)`)
}

beforeAll(async () => {
  const data = inject('portalData')
  if (data === undefined) throw new Error('the tier has no product')
  await addAddresses(await newStaff({ endpoints: portal.endpoints, data }, 'operations'))
})

describe.each(Object.entries(LIVES))('%s', (noun, life) => {
  let person: Person
  beforeAll(async () => {
    person = await portal.signUp()
    await life.before?.(person)
  })

  it.each(HANDS)('has its life by the %s', async (by, handsOf) => {
    const page = await portal.page({ as: person, allows: [absentAt(noun), ...(life.allows ?? [])] })
    if (life.answered !== undefined) await answerAs(page, portal.url, life.answered)
    await live(handsOf(page), life, { by, person })
  })
})
