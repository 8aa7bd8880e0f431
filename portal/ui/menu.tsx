/** Menus that open from a button. */
import './overlay.css'
import type { ReactNode } from 'react'
import { defined } from '../../domain/defined.ts'
import {
  Header,
  Menu as AriaMenu,
  MenuItem,
  MenuSection,
  MenuTrigger,
  Popover,
  Separator,
  Text,
} from 'react-aria-components'

export interface MenuEntry {
  readonly id: string
  readonly name: string
  readonly note?: string | undefined
  /** Why it does nothing now. */
  readonly why?: string | undefined
  readonly isBad?: boolean
  readonly href?: string
  readonly run?: () => void
  /** A line before it. */
  readonly isApart?: boolean
}

export interface MenuProps {
  readonly label: string
  /** The button that opens it. */
  readonly children: ReactNode
  readonly title?: string
  readonly entries: readonly MenuEntry[]
  readonly onOpenChange?: (isOpen: boolean) => void
  readonly isOpen?: boolean
}

export function Menu({ label, children, title, entries, ...open }: MenuProps): ReactNode {
  const run = (id: unknown): void => {
    const entry = entries.find((each) => each.id === id)
    if (entry !== undefined && entry.why === undefined) entry.run?.()
  }
  const items = entries.flatMap((entry) => [
    ...(entry.isApart === true ? [<Separator key={`${entry.id}-line`} className="menu-line" />] : []),
    <Entry key={entry.id} {...entry} />,
  ])
  return (
    <MenuTrigger {...open}>
      {children}
      <Popover className="popover" placement="bottom end" offset={4}>
        <AriaMenu className="menu" aria-label={label} onAction={run}>
          {title === undefined ? (
            items
          ) : (
            <MenuSection>
              <Header className="menu-title">{title}</Header>
              {items}
            </MenuSection>
          )}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  )
}

const Entry = ({ id, name, note, why, isBad = false, href }: MenuEntry): ReactNode => (
  <MenuItem
    id={id}
    textValue={name}
    className={`menu-item ${isBad ? 'bad' : ''} ${why === undefined ? '' : 'off'}`}
    {...defined({ href })}
  >
    <Text slot="label">{name}</Text>
    {(why ?? note) === undefined ? null : (
      <Text slot="description" className="note">
        {why ?? note}
      </Text>
    )}
  </MenuItem>
)
