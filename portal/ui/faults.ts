/** Where a form is wrong: the focus goes to the first field that is, also inside of what is closed. */

const FAULTY = ['input', 'button', 'textarea']
const SELECTOR = ['[aria-invalid="true"]', ...FAULTY.map((name) => `[data-invalid] ${name}`)].join(', ')

/** Focuses the first field that is wrong, and opens what hides it. Whether there is one. */
export function focusFirstFault(form: Pick<HTMLElement, 'querySelector'> | null | undefined): boolean {
  const field = form?.querySelector<HTMLElement>(SELECTOR) ?? undefined
  if (field === undefined) return false
  for (let place = field.closest('details'); place !== null; place = place.parentElement?.closest('details') ?? null)
    place.open = true
  field.focus()
  return true
}
