/** Each noun of customers from its form to its deletion, by the mouse and by the keyboard alone: it is refused, made,
 *  found in its list, changed and deleted. */
import { describe, it } from 'vitest'
import { open, usePortal } from './kit/browser.ts'
import { type Hands, mouseOf } from './kit/hands.ts'
import { keyboardOf } from './kit/keyboard.ts'
import { type Life, LIVES } from './kit/lives.ts'
import type { Person } from './kit/person.ts'

const portal = usePortal()
const HOSTILE = '\u202egnp.exe'

const lives = Object.entries(LIVES).flatMap(([noun, life]) => (typeof life === 'string' ? [] : [[noun, life] as const]))

const heading = ({ page }: Hands, name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()

/** Answers its name. */
async function create(hands: Hands, { path, one, named, fill, make }: Life): Promise<string> {
  if (make !== undefined) return make(hands)
  const { page, press, sees } = hands
  await open(page, path)
  await press(`Create ${one}`, 'link')
  await heading(hands, `Create ${one}`)
  if (named !== undefined) {
    await hands.fill(named, HOSTILE)
    await fill?.(hands)
    await press(`Create ${one}`)
    await sees('This form is not accepted')
    await hands.fill(named, 'first')
  }
  await press(`Create ${one}`)
  await page.getByRole('heading', { level: 1, name: `Create ${one}` }).waitFor({ state: 'detached' })
  return (await page.getByRole('heading', { level: 1 }).innerText()).trim()
}

async function live(hands: Hands, life: Life): Promise<void> {
  const { page, press, fill, open: openTab, menu, dialog, answer, sees } = hands
  const { path, one, named = 'Title', isRenamed = false, isTyped = false, ends = 'Delete' } = life
  let name = await create(hands, life)
  await open(page, path)
  await press(name, 'link')
  await heading(hands, name)
  if (isRenamed) {
    await openTab('Settings')
    await press('Edit')
    await dialog('Edit')
    await fill(named, 'second')
    await answer('Save')
    name = 'second'
    await heading(hands, name)
  }
  await life.use?.(hands, name)
  await menu(ends)
  await dialog(`${ends} ${name}?`)
  if (isTyped) await fill(`Type ${name} to confirm`, name)
  await answer(ends)
  await sees(`This ${one} is deleted`)
}

const allowed = (path: string): readonly RegExp[] => [new RegExp(`status of 404 .*${path}/`)]

async function begin(life: Life): Promise<Person> {
  const person = await portal.signUp()
  await life.before?.(person)
  return person
}

describe.each(lives)('%s', (_noun, life) => {
  it('has its life by the mouse', async () => {
    const person = await begin(life)
    await live(mouseOf(await portal.page({ as: person, allows: allowed(life.path) })), life)
  })

  it('has its life by the keyboard alone', async () => {
    const person = await begin(life)
    await live(keyboardOf(await portal.page({ as: person, allows: allowed(life.path) })), life)
  })
})
