# What the scripts that make images for this machine have in common; they source it. Needs no root, and installs nothing
# on the machine itself.
# shellcheck shell=sh

say() { echo "make-images: $*" >&2; }

# Makes the images that are named after the folder, each by the function make_NAME of the script, or all that $all names.
# What is there already stays as it is.
make_images() {
    [ $# -gt 0 ] || { say "where to? make-images FOLDER$(printf ' [%s]' $all)"; exit 2; }
    mkdir -p "$1"
    images=$(cd "$1" && pwd)
    shift
    # shellcheck disable=SC2086 # several words are several names
    [ $# -gt 0 ] || set -- $all
    umask 022
    unfinished=
    trap '[ -z "$unfinished" ] || rm -rf "$unfinished" "$unfinished.packages"' EXIT
    trap 'exit 1' HUP INT TERM
    for image; do
        case " $all " in
        *" $image "*) ;;
        *) say "there is no image $image, only $all"; exit 2 ;;
        esac
        if [ ! -e "$images/$image" ]; then
            unfinished=$images/$image
            "make_$image" "$unfinished"
            unfinished=
        fi
    done
}

# A Python environment, with what pip is asked to install. PYTHON names the interpreter.
make_environment() {
    "${PYTHON:-python3}" -m venv "$1"
    folder=$1
    shift
    "$folder/bin/python" -m pip --disable-pip-version-check --quiet --no-input install "$@"
}

# A root of its own: Debian's packages with all that they need, unpacked, and its first users and groups.
make_root() {
    root=$1
    shift
    fetch_packages "$root.packages" '?essential' "$@"
    for folder in bin sbin lib lib64; do
        mkdir -p "$root/usr/$folder"
        ln -s "usr/$folder" "$root/$folder"
    done
    for package in "$root.packages"/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" >"$root.packages/files.tar"
        tar --extract --keep-directory-symlink --file "$root.packages/files.tar" --directory "$root"
    done
    rm -r "$root.packages"
    # What packages do once they are unpacked, as far as it matters here.
    rm -rf "$root/var/run"
    ln -s /run "$root/var/run"
    cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
    cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
    mkdir -p "$root/usr/local/bin"
    for library in "$root"/usr/lib/*/blas/libblas.so.3 "$root"/usr/lib/*/lapack/liblapack.so.3; do
        [ ! -e "$library" ] || ln -sf "${library#"${library%/*/*}/"}" "${library%/*/*}/"
    done
}

# Has apt fetch packages and all that they depend on, as if nothing were installed.
fetch_packages() {
    if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
        say "apt-get and dpkg-deb are missing: run this on Debian or Ubuntu, and copy the folder"
        exit 1
    fi
    mkdir -p "$1/lists/partial" "$1/archives/partial"
    : >"$1/status"
    cat >"$1/apt.conf" <<-end
	Dir::State "$1";
	Dir::State::status "$1/status";
	Dir::Cache "$1";
	Debug::NoLocking "true";
	APT::Sandbox::User "$(id -un)";
	Acquire::Languages "none";
	end
    export APT_CONFIG="$1/apt.conf"
    shift
    apt-get --quiet=2 update </dev/null >&2
    apt-get --quiet=2 --yes --download-only --no-install-recommends install "$@" </dev/null >&2
}
